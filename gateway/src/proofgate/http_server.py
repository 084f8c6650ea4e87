"""uvicorn as this package uses it: bound beforehand, one line once it serves, signals left to the caller."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from proofgate.address import split_address


class ListenError(Exception):
    """An address cannot be bound."""

    code = "listen"


def bind(listen: str) -> socket.socket:
    """A socket bound to `host:port`, not listening yet. Raises ListenError."""
    host, port = split_address(listen)
    listener: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise ListenError(f"{listen} cannot be bound: {error.strerror}") from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The bound address as `host:port` or `[v6]:port`."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Server(uvicorn.Server):
    """An HTTP/1.1 server that prints `announcement` to standard output once it accepts connections."""

    def __init__(self, app: Callable[..., object], announcement: str, *, keep_alive_seconds: int = 5) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=keep_alive_seconds,
                # Without it, one client that keeps its connection busy would keep the process alive.
                timeout_graceful_shutdown=2,
            )
        )
        self._announcement = announcement

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(self._announcement, flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would stop at the first signal; what a signal means is for the caller to say.
        yield


STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def on_signals(handler: Callable[[], None], *numbers: signal.Signals) -> Iterator[None]:
    """The signals, SIGTERM and SIGINT by default, call `handler` on the running event loop in the block."""
    loop = asyncio.get_running_loop()
    for number in numbers or STOP_SIGNALS:
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in numbers or STOP_SIGNALS:
            loop.remove_signal_handler(number)
