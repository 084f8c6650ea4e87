"""A worker on a machine without a free port for its providers refuses requests with an error code until one is free."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from e2e.local_gateway import KEYS, LocalGateway, local_gateway
from e2e.own_network import limit_ports, own_network
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, error_of, read_to_end, status_of
from e2e.worker.test_memory import SMALL, head

#: The only source ports for connections to providers.
PORTS = range(20_000, 20_004)
#: The source ports of the test's clients, each used once.
OTHERS = count(21_000)
# A stream that lasts longer than the test.
PROMPT = "mock:tokens=1000 mock:interval=10000"
TIMEOUTS = {"lameDuckSeconds": 0, "drainSeconds": 1}


@pytest.fixture
def gateway(folder: Path) -> Iterator[LocalGateway]:
    # All listeners start before the ports are limited.
    options = {"settings": {"timeouts": TIMEOUTS}, "upstream_arguments": ["--listen", "127.0.0.1:0"]}
    with own_network(), local_gateway(folder, **options) as gateway:
        limit_ports(PORTS[0], PORTS[-1])
        yield gateway


def connect(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), PATIENCE, source_address=("127.0.0.1", next(OTHERS)))


def ask(address: str, request: bytes) -> bytes:
    with connect(address) as connection:
        connection.sendall(request)
        return read_to_end(connection)


def served(gateway: LocalGateway) -> bytes:
    return ask(gateway.address, chat_request(SMALL, KEYS["globex"]))


def admin(gateway: LocalGateway, path: str) -> str:
    answer = ask(gateway.admin, f"GET {path} HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n".encode())
    assert status_of(answer) == 200, answer
    return answer.partition(b"\r\n\r\n")[2].decode()


def begin_stream(gateway: LocalGateway) -> tuple[socket.socket, bytes]:
    """A streamed request, and the first bytes of its answer."""
    body = json.dumps({"model": "gpt-4o-mini", "stream": True, "messages": [{"role": "user", "content": PROMPT}]})
    connection = connect(gateway.address)
    connection.sendall(head("/v1/chat/completions", "acme", f"Content-Length: {len(body)}") + body.encode())
    return connection, connection.recv(1 << 16)


def test_requests_that_find_no_port_are_refused_by_name_and_served_once_there_is_one(gateway: LocalGateway) -> None:
    with ExitStack() as stack:
        for _ in PORTS:
            connection, answer = begin_stream(gateway)
            stack.enter_context(connection)
            assert status_of(answer) == 200, answer
        for _ in range(3):
            refused = served(gateway)
            assert (status_of(refused), error_of(refused)["code"]) == (503, "ports_exhausted")
            assert b"\r\nretry-after: 1\r\n" in refused.lower()
        assert admin(gateway, "/healthz") == "ok\n"
        assert json.loads(admin(gateway, "/status"))["not_ready"] is None
        told = 'proofgate_provider_failures_total{provider="mock",failure="ports_exhausted"} 3'
        assert told in admin(gateway, "/metrics")
        # The failures are not the provider's.
        assert 'proofgate_provider_paused{provider="mock"} 0' in admin(gateway, "/metrics")
    wait_until(lambda: status_of(served(gateway)) == 200, PATIENCE, "requests are served again")
    assert gateway.worker is not None
    assert gateway.worker.stop() == 0
    ends = Counter(record["outcome"] for record in gateway.records() if record["kind"] == "completion")
    assert (ends["complete"], ends["client_disconnect"]) == (1, len(PORTS))
    assert ends["internal_error"] >= 3
