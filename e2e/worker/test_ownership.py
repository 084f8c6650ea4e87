"""Behind the load balancer, a connection belongs to the tenant for which it was routed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.worker.raw_http import chat_request, send, status_of

ROUTING_KEY = "0123456789abcdef0123456789abcdef"
SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
BODY = json.dumps({"model": MODEL, "messages": []}).encode()


def proxy_header(tenant: bytes, key: bytes = ROUTING_KEY.encode() + b":") -> bytes:
    """A PROXY v2 header over IPv4 that carries the routed tenant as its unique id (TLV 0x05)."""
    tenant = key + tenant
    addresses = bytes([127, 0, 0, 1, 127, 0, 0, 1, 0, 1, 0, 2])
    payload = addresses + b"\x05" + len(tenant).to_bytes(2, "big") + tenant
    return SIGNATURE + b"\x21\x11" + len(payload).to_bytes(2, "big") + payload


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    folder = tmp_path_factory.mktemp("routed")
    (folder / "routing-key").write_text(f"{ROUTING_KEY}\n")
    proxy = {"routingKeyFile": str(folder / "routing-key")}
    with local_gateway(folder, settings={"proxyProtocol": proxy}) as running:
        yield running


def test_a_request_of_the_routed_tenant_is_served(gateway: LocalGateway) -> None:
    assert status_of(send(gateway.address, proxy_header(b"acme") + chat_request(BODY, KEYS["acme"]))) == 200


def test_on_a_connection_that_was_routed_for_nobody_any_tenant_is_served(gateway: LocalGateway) -> None:
    first = chat_request(BODY, KEYS["acme"]).replace(b"Connection: close\r\n", b"")
    response = send(gateway.address, proxy_header(b"*") + first + chat_request(BODY, KEYS["globex"]))
    assert response.count(b"HTTP/1.1 200 OK") == 2


def test_a_second_tenant_on_one_connection_is_not_served_by_the_first_ones_worker(gateway: LocalGateway) -> None:
    first = chat_request(BODY, KEYS["acme"]).replace(b"Connection: close\r\n", b"")
    response = send(gateway.address, proxy_header(b"acme") + first + chat_request(BODY, KEYS["globex"]))
    assert response.startswith(b"HTTP/1.1 200 OK")
    refusal = response[response.index(b"HTTP/1.1 421 Misdirected Request") :].lower()
    assert b"x-should-retry: true" in refusal and b"connection: close" in refusal


def test_a_connection_without_the_header_gets_no_answer(gateway: LocalGateway) -> None:
    assert send(gateway.address, chat_request(BODY, KEYS["acme"])) == b""


def test_a_header_longer_than_a_load_balancer_writes_is_not_waited_for(gateway: LocalGateway) -> None:
    header = SIGNATURE + b"\x21\x11" + (60_000).to_bytes(2, "big")
    assert send(gateway.address, header) == b""
