"""Stand-ins for endpoints that issue credentials; each accepts only requests that its cloud documents."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import parse_qs, urlsplit

from loopback import Handler, answering

#: Part of every token, key and refusal, so that a test can detect a leak.
SECRET = "sk-very-secret"
SERVICE_ACCOUNT_TOKEN = f"eyJhbGciOiJSUzI1NiJ9.{SECRET}.signature"
_FORM = "application/x-www-form-urlencoded"
_XMLNS = "https://sts.amazonaws.com/doc/2011-06-15/"


@dataclass
class Endpoints:
    """The endpoints' address, their requests, and their answers."""

    url: str = ""
    #: Method, path, headers with names in lower case, and body of each request.
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    #: The number of seconds by which their clock is ahead.
    ahead: float = 0.0
    lifetime: int = 3600
    #: An answer that replaces their own.
    scripted: tuple[int, bytes] | None = None

    def respond(self, handler: Handler) -> None:
        """Answers one request."""
        length = int(handler.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(length)
        self.asked.append((handler.command, handler.path, headers, body))
        status, answer = self.scripted or self._answer(handler.command, handler.path, headers, body)
        handler.send_response_only(status)
        handler.send_header("Date", format_datetime(self.now(), usegmt=True))
        handler.send_header("Location", "http://127.0.0.1:1/elsewhere")
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def now(self) -> datetime:
        """The time on their clock."""
        return datetime.now(UTC) + timedelta(seconds=self.ahead)

    @property
    def ends(self) -> str:
        """The time on their clock at which issued credentials expire."""
        return (self.now() + timedelta(seconds=self.lifetime)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def form(self) -> dict[str, str]:
        """The form of the newest request."""
        return {name: values[0] for name, values in parse_qs(self.asked[-1][3].decode()).items()}

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        form: dict[str, str] = {}
        if headers.get("content-type", "").startswith(_FORM):
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        match method, urlsplit(path).path:
            case "POST", "/sts":
                return self._sts(form)
            case "GET", "/v1/credentials":
                return self._agent(headers)
            case "POST", "/tenant-1/oauth2/v2.0/token":
                return self._entra(form)
            case "POST", "/v1/token":
                return self._google_sts(form)
            case "POST", named if named.endswith(":generateAccessToken"):
                return self._iam_credentials(named, headers, json.loads(body))
            case "GET", "/computeMetadata/v1/instance/service-accounts/default/token":
                if headers.get("metadata-flavor") != "Google":
                    return 403, b"Missing Metadata-Flavor:Google header."
                return self._token("metadata")
        return 404, SECRET.encode()

    def _token(self, whose: str) -> tuple[int, bytes]:
        token = {"access_token": f"{SECRET}-{whose}", "expires_in": self.lifetime, "token_type": "Bearer"}
        return 200, json.dumps(token).encode()

    def _sts(self, form: dict[str, str]) -> tuple[int, bytes]:
        wanted = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": "arn:aws:iam::123456789012:role/proofgate",
            "WebIdentityToken": SERVICE_ACCOUNT_TOKEN,
        }
        if any(form.get(name) != value for name, value in wanted.items()) or not form.get("RoleSessionName"):
            error = f"<Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>{SECRET}</Message>"
            return 400, f'<ErrorResponse xmlns="{_XMLNS}"><Error>{error}</Error></ErrorResponse>'.encode()
        action = "AssumeRoleWithWebIdentity"
        credentials = (
            f"<AccessKeyId>ASIAEXAMPLE</AccessKeyId><SecretAccessKey>{SECRET}/key</SecretAccessKey>"
            f"<SessionToken>{SECRET}/session==</SessionToken><Expiration>{self.ends}</Expiration>"
        )
        return 200, (
            f'<{action}Response xmlns="{_XMLNS}"><{action}Result><Credentials>{credentials}</Credentials>'
            f"</{action}Result></{action}Response>"
        ).encode()

    def _agent(self, headers: dict[str, str]) -> tuple[int, bytes]:
        if headers.get("authorization") != SERVICE_ACCOUNT_TOKEN:
            refused = f"error fetching credentials: ResourceNotFoundException: {SECRET}"
            return 400, refused.encode()
        found = {
            "AccessKeyId": "ASIAEXAMPLE",
            "SecretAccessKey": f"{SECRET}/key",
            "Token": f"{SECRET}/session==",
            "AccountId": "123456789012",
            "Expiration": self.ends,
        }
        return 200, json.dumps(found).encode()

    def _entra(self, form: dict[str, str]) -> tuple[int, bytes]:
        wanted = {
            "grant_type": "client_credentials",
            "client_id": "client-1",
            "scope": "https://cognitiveservices.azure.com/.default",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": SERVICE_ACCOUNT_TOKEN,
        }
        if form != wanted:
            refused = {"error": "invalid_client", "error_description": SECRET, "error_codes": [700213]}
            return 401, json.dumps(refused).encode()
        return self._token("entra")

    def _google_sts(self, form: dict[str, str]) -> tuple[int, bytes]:
        wanted = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "subject_token": SERVICE_ACCOUNT_TOKEN,
        }
        scopes = [f"https://www.googleapis.com/auth/{name}" for name in ("cloud-platform", "iam")]
        is_whole = form.get("scope") in scopes and "audience" in form
        if not is_whole or any(form.get(name) != value for name, value in wanted.items()):
            return 400, json.dumps({"error": "invalid_grant", "error_description": SECRET}).encode()
        return self._token("federated")

    def _iam_credentials(
        self, path: str, headers: dict[str, str], body: dict[str, object]
    ) -> tuple[int, bytes]:
        if headers.get("authorization") != f"Bearer {SECRET}-federated":
            return 403, json.dumps({"error": {"status": "PERMISSION_DENIED", "message": SECRET}}).encode()
        assert path == "/v1/projects/-/serviceAccounts/worker@p.iam.gserviceaccount.com:generateAccessToken"
        assert body["scope"] == ["https://www.googleapis.com/auth/cloud-platform"]
        return 200, json.dumps({"accessToken": f"{SECRET}-impersonated", "expireTime": self.ends}).encode()


@contextlib.contextmanager
def token_endpoints() -> Iterator[Endpoints]:
    """The stand-ins on loopback, over plain http."""
    endpoints = Endpoints()
    with answering(endpoints.respond) as url:
        endpoints.url = url.partition("/jwks")[0]
        yield endpoints
