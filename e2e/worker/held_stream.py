"""An upstream whose streams last until a test ends them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from e2e.local_gateway import MODEL
from e2e.loopback_server import loopback_server, url_of
from e2e.programs import PATIENCE


@contextmanager
def held_stream() -> Iterator[tuple[str, threading.Event]]:
    """An upstream whose streams end when they are released: its base URL, and the function that releases them."""
    released = threading.Event()

    def event(delta: dict[str, str], finish: str | None) -> bytes:
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return b"data: " + json.dumps({**chunk, "choices": choices}).encode() + b"\n\n"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            stream = json.loads(self.rfile.read(int(self.headers["Content-Length"]))).get("stream")
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            if not stream:
                self.wfile.write(b'{"choices":[]}')
                return
            self.wfile.write(event({"content": "one"}, None))
            released.wait(PATIENCE)
            self.wfile.write(event({"content": "two"}, "stop") + b"data: [DONE]\n\n")

        def log_message(self, format: str, *arguments: object) -> None:
            """Logs nothing."""

    with loopback_server(Handler) as server:
        try:
            yield f"{url_of(server)}/v1", released
        finally:
            released.set()
