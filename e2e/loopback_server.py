"""An HTTP server on loopback for as long as it is needed, or none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def loopback_server(handler: type[BaseHTTPRequestHandler] = BaseHTTPRequestHandler) -> Iterator[ThreadingHTTPServer]:
    """A running server on a port of its own; a handler that has to know the port can be put in later."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def refusing_address() -> Iterator[str]:
    """Where every connection is refused: the port is nobody else's for as long, and nobody listens there."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{silent.getsockname()[1]}"


def url_of(server: ThreadingHTTPServer) -> str:
    """Where it is reached, without a path."""
    return f"http://127.0.0.1:{server.server_port}"
