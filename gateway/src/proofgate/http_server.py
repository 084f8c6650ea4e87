"""uvicorn as this package uses it: the socket is bound before, one line announces that it serves, the caller
handles signals, and the resources of clients are limited."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from proofgate.address import split_address

#: Maximum bytes of a request's head: its URL and its header fields. Each field also counts with its overhead
#: in memory.
MAX_HEAD_BYTES = 1 << 16
FIELD_OVERHEAD_BYTES = 128
#: Bytes that the parser receives at a time before its state is checked.
_PARSE_CHUNK_BYTES = 1 << 14
#: Maximum number of requests on one connection that wait for the response to the preceding request.
MAX_PIPELINED_REQUESTS = 16
#: Paths of probes, which are answered even if the limit of requests is reached.
PROBE_PATHS = (b"/healthz", b"/readyz")
# Time after which a response is aborted if the client reads none of it, so that its memory is freed.
_SEND_TIMEOUT_MILLISECONDS = 30_000


class ListenError(Exception):
    """An address cannot be bound."""

    code = "listen"


def bind(listen: str) -> socket.socket:
    """Returns a socket bound to `host:port`, not listening yet. Raises ListenError."""
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


@dataclass(frozen=True)
class ServerLimits:
    """Limits for a port: resources of all clients together, and how long a client may delay a request."""

    head_seconds: float = 10.0
    """Seconds within which a request's head must be complete, from its first byte or from the connection's start."""
    connections: int = 256
    """Maximum number of connections. Above it, the server closes the connection that waits longest for its client."""
    requests: int = 128
    """Maximum number of requests in progress, fewer than `connections`. Further requests, except probes, get 503."""


_DEFAULT_LIMITS = ServerLimits()


class _Config(uvicorn.Config):
    """uvicorn's configuration with the limits of a port, and a list of connections that wait for their
    clients."""

    def __init__(self, app: Callable[..., object], limits: ServerLimits, **options: Any) -> None:
        super().__init__(app, http=_Connection, backlog=limits.connections, **options)
        self.limits = limits
        #: Connections that wait for their client to send a request or to receive a response, longest wait first.
        self.waiting: dict[_Connection, None] = {}


class _LimitExceededError(Exception):
    """A client exceeds a limit."""


class _Connection(HttpToolsProtocol):
    """A connection that enforces the limits of its port."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(config, _Config)  # noqa: S101 - narrows the type
        self._limits, self._waiting = config.limits, config.waiting
        self._head_bytes = 0
        #: Bytes since the last event of the parser, which may buffer them as an incomplete line.
        self._untold = 0
        self._head_due: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._update_waiting()
        self._start_head_timer()
        if len(self.connections) > self._limits.connections:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._update_waiting()
        self._cancel_head_timer()

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), _PARSE_CHUNK_BYTES):
            if self._refused:
                break
            piece = data[at : at + _PARSE_CHUNK_BYTES]
            self._untold += len(piece)
            super().data_received(piece)
            if self._untold > MAX_HEAD_BYTES and not self._refused:
                self._refuse(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    "The request's head, chunk or trailer is too long.",
                )
        if self._is_idle() and self._head_due is None:
            self._start_head_timer()

    def send_400_response(self, msg: str) -> None:
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's head is too large.")
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def on_message_begin(self) -> None:
        self._head_bytes = self._untold = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head_bytes(len(url))
        super().on_url(url)

    # This includes trailer fields, which follow a body.
    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head_bytes(len(name) + len(value) + FIELD_OVERHEAD_BYTES)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED_REQUESTS:
            raise _LimitExceededError
        full = len(self.tasks) >= self._limits.requests and self.url.partition(b"?")[0] not in PROBE_PATHS
        # uvicorn would count all connections, but here idle ones must not block other clients.
        self.limit_concurrency = 0 if full else None
        super().on_headers_complete()
        self._update_waiting()
        self._cancel_head_timer()

    def on_body(self, body: bytes) -> None:
        self._untold = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_idle():
            # Data that the application did not read is dropped before the next request.
            self.cycle.body = bytearray()
        self._update_waiting()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update_waiting()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update_waiting()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _update_waiting(self) -> None:
        # The application may end after its connection.
        if self in self.connections and (self._is_idle() or self.flow.write_paused):
            self._waiting[self] = None
        else:
            self._waiting.pop(self, None)

    def _start_head_timer(self) -> None:
        self._head_due = self.loop.call_later(self._limits.head_seconds, self.timeout_keep_alive_handler)

    def _cancel_head_timer(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _count_head_bytes(self, more: int) -> None:
        self._untold = 0
        self._head_bytes += more
        if self._head_bytes > MAX_HEAD_BYTES:
            raise _LimitExceededError

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        """Sends a response and stops reading."""
        self._refused = True
        if not self._is_idle():
            # The response would be in the middle of another response.
            self.transport.close()
            return
        head = b"content-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(text)
        self.transport.write(STATUS_LINE[status] + head + text.encode("ascii"))
        # Further input is discarded until the deadline of the head. Closing now would reset the connection,
        # and a client that is still sending would lose the response (RFC 9112 section 9.6).
        self.transport.write_eof()


class Server(uvicorn.Server):
    """An HTTP/1.1 server that prints `announcement` to standard output once it accepts connections."""

    def __init__(
        self,
        app: Callable[..., object],
        announcement: str,
        *,
        keep_alive_seconds: int = 5,
        limits: ServerLimits | None = _DEFAULT_LIMITS,
    ) -> None:
        """A mock provider, whose only client is the gateway under test, passes None as `limits`."""
        options: dict[str, Any] = {
            "loop": "uvloop",
            "ws": "none",
            "lifespan": "off",
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "proxy_headers": False,
            "timeout_keep_alive": keep_alive_seconds,
            # Without this timeout, a client that keeps its connection busy would keep the process alive.
            "timeout_graceful_shutdown": 2,
        }
        super().__init__(
            uvicorn.Config(app, http="httptools", **options)
            if limits is None
            else _Config(app, limits, **options)
        )
        self._announcement = announcement

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if isinstance(self.config, _Config):
            for listener in sockets or ():
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SEND_TIMEOUT_MILLISECONDS)
        await super().startup(sockets)
        print(self._announcement, flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would stop at the first signal; here the caller decides what a signal does.
        yield


STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def on_signals(handler: Callable[[], None], *numbers: signal.Signals) -> Iterator[None]:
    """Within the block, signals (by default SIGTERM and SIGINT) call `handler` on the running event loop."""
    loop = asyncio.get_running_loop()
    for number in numbers or STOP_SIGNALS:
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in numbers or STOP_SIGNALS:
            loop.remove_signal_handler(number)
