"""An HTTP server on loopback during a block, or an address without a server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def loopback_server(handler: type[BaseHTTPRequestHandler] = BaseHTTPRequestHandler) -> Iterator[ThreadingHTTPServer]:
    """A running server on a free port. A handler that needs the port can be set later."""
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
    """An address that refuses every connection. The port is reserved during the block, and nothing listens on it."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{silent.getsockname()[1]}"


def url_of(server: ThreadingHTTPServer) -> str:
    """The server's URL, without a path."""
    return f"http://127.0.0.1:{server.server_port}"
