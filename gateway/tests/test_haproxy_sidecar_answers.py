"""The probe by which the agent beside HAProxy checks whether requests are answered."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from certificates import write_identity

from proofgate.haproxy_sidecar import traffic_probe
from proofgate.haproxy_sidecar.traffic_probe import TrafficProbe

OK = b'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"status":"ok"}'
UNAVAILABLE = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\r\n"
    b'{"error":{"code":"no_worker_available"}}'
)


class HAProxy:
    """A listener that sends the same bytes on every connection, and records the requests."""

    def __init__(self, answer: bytes, context: ssl.SSLContext | None = None) -> None:
        self.answer, self.context = answer, context
        self.reads = True
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.reads:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self.answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def with_haproxy(haproxy: HAProxy, body: Callable[[tuple[str, int]], Awaitable[None]]) -> None:
    async def run() -> None:
        server = await asyncio.start_server(haproxy.serve, "127.0.0.1", 0, ssl=haproxy.context)
        async with server:
            await body(server.sockets[0].getsockname()[:2])

    asyncio.run(run())


def told(answer: bytes, *, times: int = 3) -> dict[str, object]:
    """The agent's report after this many requests with this answer."""
    found: dict[str, object] = {}

    async def body(address: tuple[str, int]) -> None:
        subject = TrafficProbe(address)
        for _ in range(times):
            await subject.probe()
        found.update(subject.status())

    with_haproxy(HAProxy(answer), body)
    return found


def test_a_request_that_a_worker_answers_is_answered() -> None:
    assert told(OK, times=1) == {"answered": True, "reason": "", "message": ""}


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (UNAVAILABLE, "NoWorkerUp", "503"),
        (b"HTTP/1.1 500 Internal Server Error\r\n\r\n", "WorkerFails", "GET / is answered with 500"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "WorkerFails", "401"),
        (b"", "NotAnswered", "closed without an answer"),
        (b"SSH-2.0-x\r\n", "NotAnswered", "the response is not HTTP"),
        (b"HTTP/1.1 \r\n\r\n", "NotAnswered", "the response is not HTTP"),
        (b"HTTP/1.1 200", "NotAnswered", "the response is not HTTP"),
    ],
)
def test_what_keeps_requests_from_an_answer_is_named(answer: bytes, reason: str, words: str) -> None:
    found = told(answer)
    assert (found["answered"], found["reason"]) == (False, reason)
    assert words in str(found["message"])


def test_nothing_is_said_before_it_is_known_and_what_fails_once_is_no_news() -> None:
    assert told(UNAVAILABLE, times=0)["answered"] is None
    assert told(UNAVAILABLE, times=2)["answered"] is None

    async def body(address: tuple[str, int]) -> None:
        subject = TrafficProbe(address)
        await subject.probe()
        haproxy.answer = UNAVAILABLE
        for expected in (True, True, False):
            await subject.probe()
            assert subject.status()["answered"] is expected
        haproxy.answer = OK
        await subject.probe()
        assert subject.status()["answered"] is True

    haproxy = HAProxy(OK)
    with_haproxy(haproxy, body)


def test_a_port_that_nobody_listens_on_is_not_reached() -> None:
    async def run() -> dict[str, object]:
        server = await asyncio.start_server(HAProxy(OK).serve, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        server.close()
        await server.wait_closed()
        subject = TrafficProbe(address)
        for _ in range(3):
            await subject.probe()
        return subject.status()

    assert asyncio.run(run())["reason"] == "NotReached"


def test_a_silent_haproxy_is_waited_for_no_longer_than_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_probe, "_PROBE_TIMEOUT_SECONDS", 0.01)

    async def run() -> dict[str, object]:
        released = asyncio.Event()

        async def keep(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await released.wait()
            writer.close()

        server = await asyncio.start_server(keep, "127.0.0.1", 0)
        subject = TrafficProbe(server.sockets[0].getsockname()[:2])
        for _ in range(3):
            await subject.probe()
        released.set()
        server.close()
        return subject.status()

    assert asyncio.run(run())["reason"] == "NotAnswered"


@pytest.mark.parametrize("proxied", [False, True])
def test_the_request_names_no_key_and_begins_with_a_proxy_header_where_one_is_wanted(proxied: bool) -> None:
    haproxy = HAProxy(OK)

    async def body(address: tuple[str, int]) -> None:
        await TrafficProbe(address, proxied=proxied).probe()

    with_haproxy(haproxy, body)
    (head,) = haproxy.heads
    assert head.startswith(b"PROXY UNKNOWN\r\nGET / " if proxied else b"GET / ")
    assert not any(word in head.lower() for word in (b"authorization", b"key"))


def test_it_goes_through_tls_and_says_when_that_does_not_begin(tmp_path: Path) -> None:
    certificate, key = write_identity(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def encrypted(address: tuple[str, int]) -> None:
        subject = TrafficProbe(address, tls=True)
        await subject.probe()
        assert subject.status()["answered"] is True

    async def plain(address: tuple[str, int]) -> None:
        subject = TrafficProbe(address, tls=True)
        for _ in range(3):
            await subject.probe()
        assert subject.status()["reason"] == "TLSFails"

    with_haproxy(HAProxy(OK, context), encrypted)
    without = HAProxy(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    without.reads = False
    with_haproxy(without, plain)
