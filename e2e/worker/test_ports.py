"""A worker whose machine has no port left for its providers: requests are refused by name, and nothing else is."""

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

#: All that connections to providers may come from.
PORTS = range(20_000, 20_004)
#: Whoever asks comes from ports of its own, each once.
OTHERS = count(21_000)
# A stream of words that goes on for longer than the test.
PROMPT = "mock:tokens=1000 mock:interval=10000"
TIMEOUTS = {"lameDuckSeconds": 0, "drainSeconds": 1}


@pytest.fixture
def gateway(folder: Path) -> Iterator[LocalGateway]:
    # Everything listens before there are so few ports.
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
    """A stream that is asked for, and the first bytes of its answer."""
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
        # The provider is not to blame.
        assert 'proofgate_provider_paused{provider="mock"} 0' in admin(gateway, "/metrics")
    wait_until(lambda: status_of(served(gateway)) == 200, PATIENCE, "requests are served again")
    assert gateway.worker is not None
    assert gateway.worker.stop() == 0
    ends = Counter(record["outcome"] for record in gateway.records() if record["kind"] == "completion")
    assert (ends["complete"], ends["client_disconnect"]) == (1, len(PORTS))
    assert ends["internal_error"] >= 3
