"""A worker whose process may open 1024 files: requests beyond this limit are refused or wait, and nothing ends."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.local_gateway import LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.test_memory import connect, head, is_served

FILES = 1024
STREAMS = 500
SILENT = 1128
# A stream that lasts longer than the test.
PROMPT = "mock:tokens=1000 mock:interval=10000"
# Silent clients stay connected, even on a slow machine.
TIMEOUTS = {"lameDuckSeconds": 0, "drainSeconds": 1, "clientIdleSeconds": 86_400}
LIMITED = ["prlimit", f"--nofile={FILES}:{FILES}"]


@pytest.fixture
def gateway(folder: Path) -> Iterator[LocalGateway]:
    # The gateway has a separate upstream, so that its cut streams affect no other test.
    options = {"worker_prefix": LIMITED, "upstream_arguments": ["--listen", "127.0.0.1:0"]}
    with local_gateway(folder, settings={"timeouts": TIMEOUTS}, **options) as gateway:
        yield gateway


def stream(gateway: LocalGateway) -> tuple[socket.socket, bytes]:
    """A streamed request, and the first line of its answer."""
    message = {"role": "user", "content": PROMPT}
    body = json.dumps({"model": "gpt-4o-mini", "stream": True, "messages": [message]}).encode()
    connection = connect(gateway)
    connection.sendall(head("/v1/chat/completions", "acme", f"Content-Length: {len(body)}") + body)
    return connection, connection.recv(64).split(b"\r\n", 1)[0]


def test_more_streams_than_descriptors_end_no_worker(gateway: LocalGateway) -> None:
    shares = gateway.status()["descriptors"]
    assert (shares["limit"], shares["clients"] + shares["providers"]) == (FILES, FILES - shares["reserved"])
    with ExitStack() as stack:
        answers: Counter[bytes] = Counter()
        for _ in range(STREAMS):
            connection, first = stream(gateway)
            stack.enter_context(connection)
            answers[first] += 1
        assert answers == {
            b"HTTP/1.1 200 OK": shares["providers"],
            b"HTTP/1.1 503 Service Unavailable": STREAMS - shares["providers"],
        }
        assert gateway.admin_text("/healthz") == "ok\n"
        assert gateway.status()["not_ready"] is None
    wait_until(lambda: is_served(gateway), PATIENCE, "requests are served again")
    assert gateway.worker is not None
    assert gateway.worker.process.poll() is None


def test_silent_connections_leave_the_admin_port_its_descriptors(gateway: LocalGateway) -> None:
    clients = gateway.status()["descriptors"]["clients"]
    with ExitStack() as stack:
        for _ in range(clients):
            stack.enter_context(connect(gateway))
        for _ in range(SILENT - clients):
            # Beyond the kernel's queue, a connection is not established, and uses nothing of the worker.
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            host, port = gateway.address.rsplit(":", 1)
            connection.connect_ex((host, int(port)))
        wait_until(lambda: gateway.status()["connections"] == clients, PATIENCE, "its part is taken")
        for _ in range(20):
            assert gateway.admin_text("/healthz") == "ok\n"
            assert "proofgate_connections" in gateway.admin_text("/metrics")
    wait_until(lambda: is_served(gateway), PATIENCE, "requests are served again")


def test_a_shortfall_is_told_at_the_start(gateway: LocalGateway) -> None:
    descriptors = gateway.status()["capacity"]["descriptors"]
    assert descriptors == {"needed": 8512, "available": FILES, "short": True}
    assert 'proofgate_capacity_available{resource="descriptors"} 1024' in gateway.admin_text("/metrics")
