"""A stand-in for Google's Vertex AI, and for the endpoint that gives access tokens to a service account.

A token is valid for its stated time. Vertex AI accepts only requests with a valid token, and answers like the stand-in
upstream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from google.auth import jwt
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

PROJECT, LOCATION = "my-project", "europe-west1"
#: The audience that Google's library uses for every endpoint.
AUDIENCE = "https://oauth2.googleapis.com/token"
ACCOUNT = "worker@my-project.iam.gserviceaccount.com"
_JSON = {"content-type": "application/json"}


class VertexUpstream:
    """The stand-in: its address, its received requests, and its issued tokens."""

    def __init__(self) -> None:
        self.url = ""
        self._mock = MockUpstream(UpstreamOptions())
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.lifetime_seconds = 3600
        #: Whether the token endpoint answers 503.
        self.is_down = False
        #: Each token with the monotonic time of its expiry.
        self.tokens: dict[str, float] = {}
        #: Path and status of each request, except token requests.
        self.requests: list[tuple[str, int]] = []
        #: The tokens with which requests were accepted.
        self.used: set[str] = set()

    def key_file(self) -> str:
        """The service account's key file in the format of Google Cloud."""
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return json.dumps(
            {
                "type": "service_account",
                "project_id": PROJECT,
                "private_key_id": "key-1",
                "private_key": pem,
                "client_email": ACCOUNT,
                "token_uri": f"{self.url}/token",
            }
        )

    def token_for(self, body: bytes) -> tuple[int, bytes]:
        """The answer to an assertion (RFC 7523)."""
        if self.is_down:
            return 503, b'{"error":"temporarily_unavailable"}'
        form = parse_qs(body.decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        public = self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        claims: dict[str, Any] = jwt.decode(  # type: ignore[no-untyped-call]
            form["assertion"][0], public, audience=AUDIENCE
        )
        assert claims["iss"] == ACCOUNT
        token = f"ya29.secret-token-{len(self.tokens)}"
        self.tokens[token] = time.monotonic() + self.lifetime_seconds
        return 200, encode({"access_token": token, "expires_in": self.lifetime_seconds, "token_type": "Bearer"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._mock(scope, receive, send)
            return
        body, path = await whole_body(receive), target_of(scope)
        if path == "/token":
            status, document = self.token_for(body)
            await answer(send, status, _JSON, [document])
            return

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.requests.append((path, message["status"]))
            await send(message)

        token = fields_of(scope).get("authorization", "").removeprefix("Bearer ")
        ends = self.tokens.get(token)
        if ends is None or time.monotonic() >= ends:
            said = b'{"error":{"code":401,"status":"UNAUTHENTICATED"}}'
            await answer(send_and_note, 401, _JSON, [said])
        elif not path.startswith(f"/v1/projects/{PROJECT}/locations/{LOCATION}/"):
            await answer(send_and_note, 404, _JSON, [b'{"error":{"code":404,"status":"NOT_FOUND"}}'])
        else:
            self.used.add(token)
            await self._mock(scope, received_again(body, receive), send_and_note)


@contextmanager
def vertex_upstream() -> Iterator[VertexUpstream]:
    """A running stand-in on loopback."""
    upstream = VertexUpstream()
    with asgi_server(upstream) as upstream.url:
        yield upstream
