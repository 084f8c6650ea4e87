"""A stand-in for three clouds, which issue credentials for a ServiceAccount token, and for models that accept them.

Issued credentials are valid for their stated time. A model request without a valid signature or token gets 401.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

from proofgate.mock_answers import encode
from proofgate.mock_upstream import MockUpstream, UpstreamOptions

from e2e.asgi_server import (
    Message,
    Receive,
    Scope,
    Send,
    answer,
    asgi_server,
    fields_of,
    received_again,
    target_of,
    whole_body,
)
from e2e.aws_signature import Credentials, fault

REGION, PROJECT, LOCATION = "eu-west-1", "my-project", "europe-west1"
ROLE = "arn:aws:iam::123456789012:role/proofgate"
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/eks"
ACCOUNT = "worker@my-project.iam.gserviceaccount.com"
_METADATA = "/computeMetadata/v1/instance/service-accounts/default/token"
_JSON = {"content-type": "application/json"}
_XMLNS = "https://sts.amazonaws.com/doc/2011-06-15/"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


class CloudUpstream:
    """The stand-in: its address, its issued credentials, and its received requests."""

    def __init__(self) -> None:
        self.url = ""
        self._mock = MockUpstream(UpstreamOptions())
        self.lifetime_seconds = 3600.0
        #: The ServiceAccount token that it accepts.
        self.subject = "eyJ.service-account-1.signature"
        #: Whether requests for credentials get 503.
        self.is_down = False
        #: The issued credentials (an AWS session by its session token), with the monotonic time of their expiry.
        self.issued: dict[str, float] = {}
        #: Path, status and used credentials (from `issued`) of each request to a model.
        self.requests: list[tuple[str, int, str]] = []

    @property
    def secrets(self) -> list[str]:
        """All secrets, which nobody may reveal."""
        return [*self.issued, self.subject, "aws-secret-of-"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http":
            return
        body, path, fields = await whole_body(receive), target_of(scope), fields_of(scope)
        document = self._credentials(scope["method"], path, fields, body)
        if document is not None:
            status = 503 if self.is_down else 200 if document else 400
            await answer(send, status, _JSON, [document if status == 200 else b"{}"])
            return
        used = self._used(path, fields, body)

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.requests.append((path, message["status"], used))
            await send(message)

        if time.monotonic() >= self.issued.get(used, 0.0):
            await answer(send_and_note, 401, _JSON, [b'{"error":{"code":401,"status":"UNAUTHENTICATED"}}'])
        else:
            await self._mock(scope, received_again(body, receive), send_and_note)

    def _used(self, path: str, fields: dict[str, str], body: bytes) -> str:
        """The credentials of a request; empty if its signature does not belong to issued ones."""
        if "api-key" in fields:
            return ""
        session = fields.get("x-amz-security-token")
        if session is None:
            return fields.get("authorization", "").removeprefix("Bearer ")
        credentials = Credentials(f"ASIA-{session}", f"aws-secret-of-{session}", session, REGION)
        wrong = fault(credentials, "POST", path, fields, body)
        return session if wrong is None else ""

    def _issue(self, kind: str) -> str:
        text = f"{kind}-issued-{len(self.issued)}"
        if not self.is_down:
            self.issued[text] = time.monotonic() + self.lifetime_seconds
        return text

    @property
    def _expiration(self) -> str:
        ends = datetime.now(UTC) + timedelta(seconds=self.lifetime_seconds)
        return ends.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _credentials(self, method: str, path: str, fields: dict[str, str], body: bytes) -> bytes | None:
        """The answer of a credentials endpoint; empty for a refusal, None for other paths."""
        asked: tuple[str | None, ...]
        form = {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
        match method, path:
            case "POST", "/sts":
                asked = (form.get("Action"), form.get("Version"), form.get("RoleArn"), form.get("WebIdentityToken"))
                is_good = asked == ("AssumeRoleWithWebIdentity", "2011-06-15", ROLE, self.subject)
                return self._session_xml() if is_good and form.get("RoleSessionName") else b""
            case "GET", "/v1/credentials":
                return self._session_json() if fields.get("authorization") == self.subject else b""
            case "POST", "/tenant-1/oauth2/v2.0/token":
                asked = (form.get("grant_type"), form.get("client_assertion_type"), form.get("client_assertion"))
                is_good = asked == ("client_credentials", _ASSERTION, self.subject)
                is_scope = form.get("scope") == "https://cognitiveservices.azure.com/.default"
                return self._token("entra") if is_good and is_scope else b""
            case "POST", "/v1/token":
                asked = (form.get("grant_type"), form.get("audience"), form.get("subject_token"))
                return self._token("federated") if asked == (_EXCHANGE, AUDIENCE, self.subject) else b""
            case "POST", named if named == f"/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken":
                token = fields.get("authorization", "").removeprefix("Bearer ")
                if time.monotonic() >= self.issued.get(token, 0.0):
                    return b""
                return encode({"accessToken": self._issue("impersonated"), "expireTime": self._expiration})
            case "GET", _ if path == _METADATA:
                return self._token("metadata") if fields.get("metadata-flavor") == "Google" else b""
        return None

    def _token(self, kind: str) -> bytes:
        lifetime = int(self.lifetime_seconds)
        return encode({"access_token": self._issue(kind), "expires_in": lifetime, "token_type": "Bearer"})

    def _session_xml(self) -> bytes:
        session = self._issue("sts")
        action = "AssumeRoleWithWebIdentity"
        found = (
            f"<AccessKeyId>ASIA-{session}</AccessKeyId><SecretAccessKey>aws-secret-of-{session}</SecretAccessKey>"
            f"<SessionToken>{session}</SessionToken><Expiration>{self._expiration}</Expiration>"
        )
        return (
            f'<{action}Response xmlns="{_XMLNS}"><{action}Result><Credentials>{found}</Credentials></{action}Result>'
            f"</{action}Response>"
        ).encode()

    def _session_json(self) -> bytes:
        session = self._issue("pod")
        found = {"AccessKeyId": f"ASIA-{session}", "SecretAccessKey": f"aws-secret-of-{session}", "Token": session}
        return json.dumps({**found, "Expiration": self._expiration}).encode()


@contextmanager
def cloud_upstream() -> Iterator[CloudUpstream]:
    """A running stand-in on loopback."""
    upstream = CloudUpstream()
    with asgi_server(upstream) as upstream.url:
        yield upstream
