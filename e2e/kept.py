"""A stand-in provider that keeps its received requests, and answers as its test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A request that reached the provider."""

    path: str
    body: bytes

    def read(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """An answer of the provider: one JSON document, or the events of a stream, each sent separately."""

    document: Any = None
    events: Sequence[bytes] = ()


@dataclass
class KeepingProvider:
    """The provider: its address and its received requests, oldest first."""

    port: int
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def take(self) -> list[Asked]:
        """The requests received since the last call."""
        taken, self.asked = self.asked, []
        return taken


@contextmanager
def keeping_provider(answer: Callable[[Asked], Answer]) -> Iterator[KeepingProvider]:
    """A running provider, whose connections stay open."""
    provider = KeepingProvider(0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Each event is sent immediately.
        wbufsize = 0
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            asked = Asked(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            provider.asked.append(asked)
            told = answer(asked)
            self.send_response(200)
            if told.events:
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for event in told.events:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
                self.wfile.write(b"0\r\n\r\n")
                return
            body = json.dumps(told.document).encode()
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    class Server(ThreadingHTTPServer):
        # A killed gateway leaves connections open, whose end is not awaited.
        block_on_close = False
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        provider.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
