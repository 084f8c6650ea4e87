"""HTTP servers on loopback with answers that the test controls byte by byte."""

from __future__ import annotations

import contextlib
import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Handler = http.server.BaseHTTPRequestHandler


@contextlib.contextmanager
def answering(respond: Callable[[Handler], None], tls: tuple[Path, Path] | None = None) -> Iterator[str]:
    """Runs a server whose answers `respond` writes; yields its URL."""

    class Answers(Handler):
        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            with contextlib.suppress(OSError):
                respond(self)

        do_POST = do_GET  # noqa: N815 - as above

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # in some tests the client refuses the certificate

    server = Server(("127.0.0.1", 0), Answers)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}/jwks?version=1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(body: bytes, status: int = 200, length: int | None = None) -> Callable[[Handler], None]:
    def respond(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Location", "http://127.0.0.1:1/elsewhere")
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        handler.end_headers()
        handler.wfile.write(body)

    return respond
