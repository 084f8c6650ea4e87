"""A stand-in for Amazon Bedrock that takes no request whose signature is not that of its bytes.

It answers as the stand-in upstream does, or what a test has put before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler

from proofgate import mock_bedrock
from proofgate.mock_answers import Behaviour, ClientError, encode

from e2e.aws_signature import Credentials, fault
from e2e.loopback_server import loopback_server, url_of


class BedrockUpstream:
    """Its address, what it was asked, and what it answers."""

    def __init__(self, credentials: Credentials, url: str) -> None:
        self.credentials = credentials
        self.url = url
        #: Path and body of each request that was signed as it should be.
        self.requests: list[tuple[str, bytes]] = []
        #: What was wrong with the signatures of the others.
        self.faults: list[str] = []
        #: Answers in the place of the stand-in's own, each for one request: status, fields, and pieces of the
        #: body. A stream whose last piece is None is cut there.
        self.scripted: list[tuple[int, dict[str, str], list[bytes | None]]] = []

    def stream(self, *frames: bytes | None) -> None:
        """Answers the next request with these frames."""
        self.scripted.append((200, {"content-type": "application/vnd.amazon.eventstream"}, list(frames)))

    def answer(self, status: int, document: object, **fields: str) -> None:
        """Answers the next request with a document."""
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        self.scripted.append((status, {"content-type": "application/json", **named}, [encode(document)]))

    def answer_to(self, path: str, body: bytes) -> tuple[int, dict[str, str], list[bytes | None]]:
        """What the next request at a path gets."""
        if self.scripted:
            return self.scripted.pop(0)
        kind = mock_bedrock.endpoint(path)
        if kind is None:
            return 404, {"x-amzn-errortype": "UnknownOperationException"}, [b"{}"]
        try:
            exchange = kind(body, Behaviour(), len(self.requests), path)
        except ClientError as error:
            fields = {name.decode(): value.decode() for name, value in kind.error_fields(error.status)}
            return error.status, fields, [kind.error(error.status, error.code, str(error))]
        if not exchange.stream:
            return 200, {"content-type": "application/json"}, [exchange.completion()]
        events: list[bytes | None] = list(exchange.events())
        cut = exchange.behaviour.cut
        pieces = events if cut is None else [*events[:cut], None]
        return 200, {"content-type": kind.stream_type.decode()}, pieces


@contextmanager
def bedrock_upstream(credentials: Credentials) -> Iterator[BedrockUpstream]:
    """A running stand-in on loopback."""
    with loopback_server() as server:
        upstream = BedrockUpstream(credentials, url_of(server))
        server.RequestHandlerClass = _handler(upstream)
        yield upstream


def _handler(upstream: BedrockUpstream) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            wrong = fault(upstream.credentials, "POST", self.path, headers, body)
            if wrong is not None:
                upstream.faults.append(wrong)
                said = {"message": f"The request signature we calculated does not match: {wrong}"}
                self._answer(403, {"x-amzn-errortype": "InvalidSignatureException"}, [encode(said)])
                return
            upstream.requests.append((self.path, body))
            self._answer(*upstream.answer_to(self.path, body))

        def _answer(self, status: int, fields: dict[str, str], pieces: list[bytes | None]) -> None:
            self.send_response(status)
            for name, value in {**fields, "transfer-encoding": "chunked"}.items():
                self.send_header(name, value)
            self.end_headers()
            # Of a stream that is broken the worker takes no more.
            with suppress(ConnectionError):
                for piece in pieces:
                    if piece is None:
                        self.close_connection = True
                        return
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler
