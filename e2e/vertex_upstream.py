"""A stand-in for Google's Vertex AI, and for the endpoint that gives access tokens to a service account.

A token is good for as long as it was said to be. Vertex AI takes no request without one that is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from google.auth import jwt
from proofgate.mock_answers import Behaviour, ClientError, Exchange, encode
from proofgate.mock_dialects import Message, endpoint_at

from e2e.loopback_server import loopback_server, url_of

PUBLISHERS = "/v1/projects/my-project/locations/europe-west1/publishers"
#: What Google's library says to every endpoint.
AUDIENCE = "https://oauth2.googleapis.com/token"
ACCOUNT = "worker@my-project.iam.gserviceaccount.com"


class RawPrediction(Message):
    """A message whose model stands in the path, as `rawPredict` and `streamRawPredict` take it."""

    def asked(self, request: dict[str, Any], target: str) -> tuple[str, bool]:
        if "model" in request or request.get("anthropic_version") != "vertex-2023-10-16":
            raise ClientError(400, "invalid_request_error", "the path names the model, the body the version")
        model, _, method = target.rpartition("/models/")[2].partition(":")
        stream = method == "streamRawPredict"
        if stream != request.get("stream", False):
            raise ClientError(400, "invalid_request_error", "path and body differ about the stream")
        return unquote(model), stream


class VertexUpstream:
    """Its address, what it was asked, and the tokens it has given."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.lifetime_seconds = 3600
        #: Whether the endpoint of tokens answers 503.
        self.is_down = False
        #: Each token with the monotonic time of its end.
        self.tokens: dict[str, float] = {}
        #: Path and status of each request but those for tokens.
        self.requests: list[tuple[str, int]] = []

    def key_file(self) -> str:
        """The service account's key, as Google Cloud gives it."""
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return json.dumps(
            {
                "type": "service_account",
                "project_id": "my-project",
                "private_key_id": "key-1",
                "private_key": pem,
                "client_email": ACCOUNT,
                "token_uri": f"{self.url}/token",
            }
        )

    def token_for(self, body: bytes) -> tuple[int, bytes]:
        """What an assertion gets (RFC 7523)."""
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

    def answer_to(self, path: str, bearer: str, body: bytes) -> tuple[int, bytes, list[bytes]]:
        """Status, type and pieces of what a request to Vertex AI gets."""
        ends = self.tokens.get(bearer.removeprefix("Bearer "))
        if ends is None or time.monotonic() >= ends:
            return 401, b"application/json", [b'{"error":{"code":401,"status":"UNAUTHENTICATED"}}']
        kind = self._kind(path)
        if kind is None:
            return 404, b"application/json", [b'{"error":{"code":404,"status":"NOT_FOUND"}}']
        try:
            exchange = kind(body, Behaviour(), len(self.requests), path)
        except ClientError as error:
            return error.status, b"application/json", [kind.error(error.status, error.code, str(error))]
        if exchange.stream:
            return 200, exchange.stream_type, list(exchange.events())
        return 200, b"application/json", [exchange.completion()]

    @staticmethod
    def _kind(path: str) -> type[Exchange] | None:
        below = path.removeprefix(PUBLISHERS)
        if below == "/anthropic/models/count-tokens:rawPredict":
            return endpoint_at("/v1/messages/count_tokens")
        if below.startswith("/anthropic/models/"):
            return RawPrediction
        if path.startswith(f"{PUBLISHERS}/google"):
            return endpoint_at("/v1beta" + below.removeprefix("/google").partition("?")[0])
        return None


@contextmanager
def vertex_upstream() -> Iterator[VertexUpstream]:
    """A running stand-in on loopback."""
    with loopback_server() as server:
        upstream = VertexUpstream(url_of(server))
        server.RequestHandlerClass = _handler(upstream)
        yield upstream


def _handler(upstream: VertexUpstream) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/token":
                status, document = upstream.token_for(body)
                kind, pieces = b"application/json", [document]
            else:
                status, kind, pieces = upstream.answer_to(self.path, self.headers["authorization"] or "", body)
                upstream.requests.append((self.path, status))
            self.send_response(status)
            self.send_header("content-type", kind.decode())
            self.send_header("content-length", str(sum(map(len, pieces))))
            self.end_headers()
            self.wfile.write(b"".join(pieces))

        def log_message(self, *_arguments: object) -> None:
            pass

    return Handler
