"""Shares connections between watches: each watch is one HTTP/2 stream (RFC 9113), with many streams per
connection.

A separate connection per watch would need 300 KB here for TLS alone, a file descriptor, and as much again at
the API server. Requests here have no body and an endless response; other requests use another pool.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import cast

from aiohttp import ClientConnectionError
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from yarl import URL

from proofgate_operator import metrics

#: Maximum streams per connection, even if the API server allows more (its setting is 100): all end with their
#: connection.
_MAX_STREAMS = 250
#: The flow-control window in bytes, shared by all streams of a connection.
_WINDOW = 1 << 20
#: Seconds of silence after which a connection is tested with a PING. After as much again, it is closed.
_PING_SECONDS = 20.0
_CONNECT_SECONDS = 15.0
_INITIAL_WINDOW = 65_535


class StreamResponse:
    """A response whose body arrives in chunks; reading raises `ClientConnectionError` if the connection
    broke."""

    __slots__ = ("_error", "_over", "_pieces", "_waiter", "retry_after", "status")

    def __init__(self) -> None:
        self.status = 0
        self.retry_after: str | None = None
        self._pieces: list[bytes] = []
        self._over = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def wait_for_head(self, silence: float) -> None:
        """Return once the status is known; raises `TimeoutError` after `silence` seconds without data."""
        while not self.status:
            await self._next_chunk(silence)

    async def chunks(self, silence: float) -> AsyncIterator[bytes]:
        """Yield the body; raises `TimeoutError` after `silence` seconds without data."""
        while True:
            while self._pieces:
                yield self._pieces.pop(0)
            if self._over:
                return
            await self._next_chunk(silence)

    async def _next_chunk(self, silence: float) -> None:
        if self._error:
            raise self._error
        if self._over:
            raise ClientConnectionError("the response ended before it started")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(silence):
                await self._waiter
        finally:
            self._waiter = None

    def receive_head(self, headers: Mapping[str, str]) -> None:
        """Record the status and headers."""
        self.status, self.retry_after = int(headers[":status"]), headers.get("retry-after")
        self._wake()

    def receive_chunk(self, piece: bytes) -> None:
        """Queue a chunk of the body."""
        self._pieces.append(piece)
        self._wake()

    def finish(self, error: Exception | None = None) -> None:
        """Mark the response as ended, by `error` if there is one."""
        self._over, self._error = error is None, error
        self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


class _Connection(asyncio.Protocol):
    """One connection, and the responses that arrive on it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._h2 = H2Connection(
            H2Configuration(
                header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False
            )
        )
        self._h2.local_settings = Settings(initial_values={SettingCodes.ENABLE_PUSH: 0})
        self._answers: dict[int, StreamResponse] = {}
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = self._loop.time()
        self._asked = False
        #: Whether the server speaks HTTP/2; resolved once that is known.
        self.agreed: asyncio.Future[bool] = self._loop.create_future()
        # The caller that waited for the result may have gone.
        self.agreed.add_done_callback(lambda agreed: agreed.cancelled() or agreed.exception())
        self.closed = False

    @property
    def has_capacity(self) -> bool:
        """Whether the connection can open another stream."""
        room = min(_MAX_STREAMS, self._h2.remote_settings.max_concurrent_streams)
        return not self.closed and len(self._answers) < room and self._h2.highest_outbound_stream_id < 1 << 30

    def send_request(self, url: URL, headers: Mapping[str, str]) -> tuple[int, StreamResponse]:
        """Send a request for `url`; return the stream's number and its response."""
        stream, answer = self._h2.get_next_available_stream_id(), StreamResponse()
        told = [
            (":method", "GET"),
            (":scheme", url.scheme),
            (":authority", url.authority),
            (":path", url.raw_path_qs),
            *((name.lower(), value) for name, value in headers.items()),
        ]
        self._h2.send_headers(stream, told, end_stream=True)
        self._answers[stream] = answer
        self._send()
        return stream, answer

    def cancel(self, stream: int) -> None:
        """Reset a stream whose response is no longer needed."""
        if self._answers.pop(stream, None) and not self.closed:
            self._h2.reset_stream(stream, ErrorCodes.CANCEL)
            self._send()

    def close(self, why: str = "closed") -> None:
        """Close the connection, and end all its responses."""
        if self.closed:
            return
        self.closed = True
        if self._transport:
            self._transport.abort()
            metrics.WATCH_CONNECTIONS.dec()
        if self._timer:
            self._timer.cancel()
        self._fail(ClientConnectionError(f"the connection to the API server ended: {why}"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start HTTP/2 if it was negotiated (ALPN, RFC 7301)."""
        self._transport = cast(asyncio.Transport, transport)
        metrics.WATCH_CONNECTIONS.inc()
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            self.agreed.set_result(False)
            self.close("the server does not support HTTP/2")
            return
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW - _INITIAL_WINDOW)
        self._send()
        self._timer = self._loop.call_later(_PING_SECONDS, self.check)

    def data_received(self, data: bytes) -> None:
        """Process received data."""
        self._heard, self._asked = self._loop.time(), False
        try:
            for event in self._h2.receive_data(data):
                self._handle_event(event)
            if not self.closed:
                self._send()
        except ProtocolError as error:
            self.close(type(error).__name__)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the connection and report the error to all waiting callers."""
        self.close(type(exc).__name__ if exc else "the server closed it")

    def check(self) -> None:
        """Send a PING on a silent connection, and close a connection that did not answer the last one."""
        if self._loop.time() - self._heard >= _PING_SECONDS / 2:
            if self._asked:
                self.close("the server stopped responding")
                return
            self._asked = True
            self._h2.ping(b"proofgat")
            self._send()
        self._timer = self._loop.call_later(_PING_SECONDS, self.check)

    def _handle_event(self, event: Event) -> None:
        if isinstance(event, DataReceived):
            # h2 combines acknowledgements until they are worth a frame.
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if event.stream_id in self._answers:
                self._answers[event.stream_id].receive_chunk(event.data)
        elif isinstance(event, ResponseReceived):
            if event.stream_id in self._answers:
                # With `header_encoding` set, headers are text.
                self._answers[event.stream_id].receive_head(
                    dict(cast("list[tuple[str, str]]", event.headers))
                )
        elif isinstance(event, StreamEnded):
            self._finish_stream(event.stream_id)
        elif isinstance(event, StreamReset):
            self._finish_stream(
                event.stream_id, ClientConnectionError(f"the stream was reset: {event.error_code}")
            )
        elif isinstance(event, RemoteSettingsChanged) and not self.agreed.done():
            self.agreed.set_result(True)
        elif isinstance(event, ConnectionTerminated):
            # The streams could continue for a while, but they may as well restart on a new connection.
            self.close("GOAWAY received")

    def _finish_stream(self, stream: int, error: Exception | None = None) -> None:
        if answer := self._answers.pop(stream, None):
            answer.finish(error)

    def _fail(self, error: Exception) -> None:
        if not self.agreed.done():
            self.agreed.set_exception(error)
        for stream in list(self._answers):
            self._finish_stream(stream, error)

    def _send(self) -> None:
        assert self._transport
        self._transport.write(self._h2.data_to_send())


class Multiplexer:
    """Streams to one API server over as few connections as possible. `server_name` is the name in the
    server's certificate, if it differs from the host in the URL."""

    def __init__(self, context: ssl.SSLContext, server_name: str | None = None) -> None:
        self._context = context
        self._server_name = server_name
        self._connections: list[_Connection] = []
        self._opening = asyncio.Lock()
        self._spoken = True

    @contextlib.asynccontextmanager
    async def get(
        self, url: str, headers: Mapping[str, str], silence: float
    ) -> AsyncIterator[StreamResponse | None]:
        """Request `url` and yield the response once its status is known; yield None if the server does not
        speak HTTP/2.

        Raises the exceptions of the connection, and `TimeoutError` after `silence` seconds without data.
        """
        connection = await self._connection_with_capacity(URL(url, encoded=True))
        if connection is None:
            yield None
            return
        stream, answer = connection.send_request(URL(url, encoded=True), headers)
        try:
            await answer.wait_for_head(silence)
            yield answer
        finally:
            connection.cancel(stream)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()
        self._connections = []

    async def _connection_with_capacity(self, url: URL) -> _Connection | None:
        while self._spoken:
            if found := next(self._open(), None):
                return found
            async with self._opening:
                if self._spoken and not next(self._open(), None):
                    await self._connect(url)
        return None

    def _open(self) -> Iterator[_Connection]:
        return (connection for connection in self._connections if connection.has_capacity)

    async def _connect(self, url: URL) -> None:
        assert url.host
        name = self._server_name or url.host
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection, url.host, url.port or 443, ssl=self._context, server_hostname=name
            )
            try:
                self._spoken = await connection.agreed
            except BaseException:
                connection.close()
                raise
        self._connections = [one for one in self._connections if not one.closed]
        if self._spoken:
            if not connection.has_capacity:
                connection.close("the server accepts no streams")
                raise ClientConnectionError("the API server accepts no streams")
            self._connections.append(connection)
