"""A worker of 640 MiB, the default, survives an attacker with a valid key and the maximum number of connections."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from e2e.local_gateway import LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.memory_group import memory_group
from e2e.worker.test_memory import chunked, connect, head, is_served

POD = 640 << 20
BODY = 32 << 20
# All connections that a worker accepts, except one that checks that others are served.
CONNECTIONS = 4096 - 1


@pytest.fixture(autouse=True)
def _descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 10_000), max(before[1], 10_000)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def smallest_worker(folder: Path) -> Iterator[LocalGateway]:
    """A worker with a pod's limits, and with the operator's settings."""
    with memory_group(POD) as group:
        settings = {"limits": {"bodyBytes": BODY, "bufferedBytes": 210 << 20}}
        with local_gateway(folder, settings=settings, worker_prefix=group.prefix) as gateway:
            assert gateway.worker is not None
            yield gateway
            assert gateway.worker.process.poll() is None
            assert group.kills == 0


def send_without_waiting(connection: socket.socket, data: bytes) -> None:
    """Sends as much as the other side accepts; the other side may refuse the rest, and close."""
    connection.settimeout(0.2)
    try:
        connection.sendall(data)
    except OSError:
        return


@pytest.mark.parametrize("framing", [f"Content-Length: {BODY}", "Transfer-Encoding: chunked"])
def test_bodies_that_never_end_on_all_connections_leave_room_for_others(folder: Path, framing: str) -> None:
    begun = b"x" * 262_144 if "Length" in framing else b"%x\r\n" % BODY + b"x" * 262_144
    unfinished = head("/v1/chat/completions", "acme", framing) + begun
    with smallest_worker(folder) as gateway, ExitStack() as stack:
        for number in range(CONNECTIONS):
            send_without_waiting(stack.enter_context(connect(gateway)), unfinished)
            assert number % 512 or is_served(gateway)
        assert is_served(gateway)


def test_whole_bodies_that_are_refused_on_all_connections_leave_room_for_others(folder: Path) -> None:
    small = head("/v1/nothing", "acme", "Transfer-Encoding: chunked") + chunked(b"x" * 65_536)
    large = head("/v1/nothing", "acme", "Transfer-Encoding: chunked") + chunked(b"x" * BODY)
    with smallest_worker(folder) as gateway, ExitStack() as stack:
        for number in range(CONNECTIONS):
            connection = stack.enter_context(connect(gateway))
            connection.sendall(large if number % 192 == 0 else small)
            assert number % 512 or is_served(gateway)
        wait_until(lambda: is_served(gateway), PATIENCE, "the other tenant is served")
