"""A stand-in for Amazon Bedrock that accepts only requests with a valid signature.

It answers like the stand-in upstream, or with the answers that a test has scripted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from proofgate.mock_answers import encode
from proofgate.mock_upstream import MockUpstream, UpstreamOptions

from e2e.asgi_server import Receive, Scope, Send, answer, asgi_server, fields_of, received_again, target_of, whole_body
from e2e.aws_signature import Credentials, fault


class BedrockUpstream:
    """The stand-in: its address, its received requests, and its answers."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self.url = ""
        self._mock = MockUpstream(UpstreamOptions())
        #: Path and body of each correctly signed request.
        self.requests: list[tuple[str, bytes]] = []
        #: The signature faults of the other requests.
        self.faults: list[str] = []
        #: Answers that replace the stand-in's own, each for one request: status, fields, and pieces of the body. A
        #: stream with None as its last piece is cut at this place.
        self.scripted: list[tuple[int, dict[str, str], list[bytes | None]]] = []

    def stream(self, *frames: bytes | None) -> None:
        """Answers the next request with these frames."""
        self.scripted.append((200, {"content-type": "application/vnd.amazon.eventstream"}, list(frames)))

    def answer(self, status: int, document: object, **fields: str) -> None:
        """Answers the next request with a document."""
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        self.scripted.append((status, {"content-type": "application/json", **named}, [encode(document)]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._mock(scope, receive, send)
            return
        body, path = await whole_body(receive), target_of(scope)
        wrong = fault(self.credentials, "POST", path, fields_of(scope), body)
        if wrong is not None:
            self.faults.append(wrong)
            said = {"message": f"The request signature we calculated does not match: {wrong}"}
            await answer(send, 403, {"x-amzn-errortype": "InvalidSignatureException"}, [encode(said)])
            return
        self.requests.append((path, body))
        if self.scripted:
            await answer(send, *self.scripted.pop(0))
            return
        await self._mock(scope, received_again(body, receive), send)


@contextmanager
def bedrock_upstream(credentials: Credentials) -> Iterator[BedrockUpstream]:
    """A running stand-in on loopback."""
    upstream = BedrockUpstream(credentials)
    with asgi_server(upstream) as upstream.url:
        yield upstream
