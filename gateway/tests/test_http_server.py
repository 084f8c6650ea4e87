"""Limits on a client's use of a port: head size, idle time, concurrent requests, connections, and responses
that the client does not read."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Any, TypeVarTuple
from urllib.parse import urlsplit

import pytest
import uvloop
from conftest import PATIENCE_SECONDS, eventually, serving

from proofgate.http_server import FIELD_OVERHEAD_BYTES, MAX_HEAD_BYTES, MAX_PIPELINED_REQUESTS, ServerLimits

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
PIECE = b"x" * (1 << 23)
#: A timeout that elapses only when a test triggers it.
HEAD_SECONDS = 7200.0
Arguments = TypeVarTuple("Arguments")


class App:
    """Answers with the path; `/slow` waits for `may`, and `/large` sends two pieces."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.asked.append(path)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if path == "/slow":
            await asyncio.to_thread(self.may.wait)
        if path == "/body":
            while (await receive()).get("more_body"):
                pass
        if path == "/large":
            for _ in range(2):
                await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        await send({"type": "http.response.body", "body": path.encode()})


class Heads:
    """The timeouts for request heads, which elapse when a test triggers them."""

    def __init__(self) -> None:
        self._timers: list[tuple[asyncio.TimerHandle, Callable[..., object]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """An event loop that records the timers of this duration."""
        timers = self._timers

        class Loop(uvloop.Loop):
            def call_later(
                self,
                delay: float,
                callback: Callable[[*Arguments], object],
                *arguments: *Arguments,
                context: Context | None = None,
            ) -> asyncio.TimerHandle:
                timer = super().call_later(delay, callback, *arguments, context=context)
                if delay == HEAD_SECONDS:
                    timers.append((timer, callback))
                return timer

        self._loop = Loop()
        return self._loop

    def awaited(self) -> bool:
        return any(not timer.cancelled() for timer, _ in self._timers)

    def are_overdue(self) -> None:
        """Triggers the timeout of every pending head; at least one must be pending."""
        assert eventually(self.awaited)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._time_out)

    def _time_out(self) -> None:
        for timer, callback in self._timers:
            if not timer.cancelled():
                timer.cancel()
                callback()


@pytest.fixture
def app() -> Iterator[App]:
    app = App()
    yield app
    app.may.set()


@contextmanager
def port(
    app: App, new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop, **bounds: Any
) -> Iterator[Any]:
    """Yields a function that connects to a port with these limits."""
    with serving(app, ServerLimits(**bounds), new_loop) as url:
        parts = urlsplit(url)

        def connect(sent: bytes = b"") -> socket.socket:
            client = socket.create_connection(
                (parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS
            )
            client.sendall(sent)
            return client

        try:
            yield connect
        finally:
            app.may.set()


def rest(client: socket.socket) -> bytes:
    """Reads until the peer closes the connection."""
    parts = []
    with client, suppress(ConnectionResetError):
        while part := client.recv(1 << 20):
            parts.append(part)
    return b"".join(parts)


def answered(client: socket.socket, path: str = "/") -> None:
    """Reads one response and checks its path."""
    told = b""
    while not told.endswith(b"\r\n0\r\n\r\n"):
        part = client.recv(4096)
        assert part, told
        told += part
    assert told.startswith(b"HTTP/1.1 200 ")
    assert f"\r\n{path}\r\n".encode() in told


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * MAX_HEAD_BYTES * 2,
        b"GET /" + b"a" * MAX_HEAD_BYTES + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a" * MAX_HEAD_BYTES * 2,
        b"GET / HTTP/1.1\r\nX: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * (MAX_HEAD_BYTES // FIELD_OVERHEAD_BYTES) + b"\r\n",
        b"\r\n" * MAX_HEAD_BYTES,
    ],
    ids=["endless-url", "url", "endless-name", "value", "fields", "empty-lines"],
)
def test_a_head_that_is_too_large_is_refused_and_its_connection_ends(app: App, sent: bytes) -> None:
    # In one piece and in several, because the server may read different pieces than the client sent.
    with port(app) as connect:
        for pieces in (1, 7):
            client = connect()
            step = -(-len(sent) // pieces)
            for at in range(0, len(sent), step):
                client.sendall(sent[at : at + step])
            assert rest(client).startswith(b"HTTP/1.1 431 ")
    assert app.asked == []


def test_fields_behind_a_body_count_too(app: App) -> None:
    head = b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    with port(app) as connect:
        client = connect(head + b"X: a\r\n" * (MAX_HEAD_BYTES // FIELD_OVERHEAD_BYTES))
        told = rest(client)
    assert b"\r\n/body\r\n" not in told
    assert b" 431 " not in told, "the error would be in the middle of a response"


def test_a_head_within_the_bounds_is_read_however_it_comes(app: App) -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * (MAX_HEAD_BYTES - 1000) + b"\r\n\r\n"
    with port(app) as connect, connect() as client:
        for piece in (head[:9], head[9:40], head[40:50_000], head[50_000:]):
            client.sendall(piece)
        answered(client)
        client.sendall(head)
        answered(client)


@pytest.mark.parametrize("sent", [b"", b"G", GET[:-2]])
def test_a_connection_whose_head_does_not_come_is_closed(app: App, sent: bytes) -> None:
    with port(app, head_seconds=0.05) as connect:
        assert rest(connect(sent)) == b""


def test_a_byte_now_and_then_gains_no_time(app: App) -> None:
    def has_ended_after_one_more() -> bool:
        try:
            client.sendall(b"a")
            return not client.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True

    with port(app, head_seconds=0.05) as connect, connect(b"GET /") as client:
        client.settimeout(0.005)
        assert eventually(has_ended_after_one_more)


@pytest.mark.parametrize("sent", [b"G", b"GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\na"])
def test_the_next_head_has_as_much_time_and_a_body_that_nobody_reads_gains_none(
    app: App, sent: bytes
) -> None:
    heads = Heads()
    with port(app, heads.new_loop, head_seconds=HEAD_SECONDS) as connect, connect(GET) as client:
        answered(client)
        client.sendall(sent)
        if len(sent) > 1:
            answered(client)
            client.sendall(b"b")
        heads.are_overdue()
        assert client.recv(1) == b""


def test_a_request_that_is_under_way_has_no_such_time(app: App) -> None:
    heads = Heads()
    with port(app, heads.new_loop, head_seconds=HEAD_SECONDS) as connect, connect(SLOW) as client:
        assert eventually(lambda: app.asked == ["/slow"])
        with connect() as other:
            heads.are_overdue()
            assert other.recv(1) == b"", "the timeout has elapsed"
        app.may.set()
        answered(client, "/slow")


def test_some_requests_may_wait_on_a_connection_and_many_end_it(app: App) -> None:
    with port(app) as connect:
        with connect(GET * MAX_PIPELINED_REQUESTS) as client:
            told = b""
            while told.count(b"\r\n/\r\n") < MAX_PIPELINED_REQUESTS:
                told += client.recv(4096)
        app.asked.clear()
        client = connect()
        with suppress(OSError):
            client.sendall(SLOW + GET * 5000)
        assert b"\r\n/\r\n" not in rest(client)
        assert app.asked == ["/slow"]


def test_with_one_connection_too_many_the_one_that_waits_longest_makes_room(app: App) -> None:
    with port(app, connections=3) as connect, connect(GET) as first:
        answered(first)
        silent = [connect(), connect()]
        with connect(PROBE) as client:
            answered(client, "/healthz")
            assert first.recv(1) == b""
            with connect(GET) as another:
                answered(another)
                assert silent[0].recv(1) == b""
                silent[1].sendall(GET)
                answered(silent[1])
        for one in silent:
            one.close()


def test_beyond_the_requests_at_once_probes_alone_are_answered(app: App) -> None:
    with port(app, connections=2, requests=1) as connect, connect(SLOW) as busy:
        assert eventually(lambda: app.asked == ["/slow"])
        for _ in range(3):
            assert rest(connect(GET)).startswith(b"HTTP/1.1 503 ")
        for path in ("/healthz", "/readyz"):
            with connect(), connect(PROBE.replace(b"/healthz", path.encode())) as client:
                answered(client, path)
        app.may.set()
        answered(busy, "/slow")
        with connect(GET) as client:
            answered(client)


def test_who_does_not_take_an_answer_makes_room_too(app: App) -> None:
    with port(app, connections=1) as connect:
        greedy = connect(GET.replace(b"/ ", b"/large "))
        assert greedy.recv(1, socket.MSG_PEEK)
        with connect(PROBE) as client:
            answered(client, "/healthz")
        assert len(rest(greedy)) < 2 * len(PIECE)


def test_where_nobody_waits_the_newest_is_turned_away(app: App) -> None:
    with port(app, connections=1) as connect, connect(SLOW) as busy:
        assert eventually(lambda: app.asked == ["/slow"])
        assert rest(connect()) == b""
        app.may.set()
        answered(busy, "/slow")
