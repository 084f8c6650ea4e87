"""HAProxy in front of a worker with TLS between them, both as in pods, with the operator's certificates."""

import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from e2e.local_gateway import KEYS, LocalGateway, local_gateway

from proofgate_operator.build.haproxy_config import BackendTls
from proofgate_operator.build.internal_authority import renew_entries
from proofgate_operator.build.internal_tls import (
    AUTHORITIES_FILE,
    CHAIN_FILE,
    KEY_FILE,
    haproxy_endpoint,
    worker_endpoint,
)
from tests.agents import agent
from tests.gateways import gateway
from tests.haproxy_bench import PATIENCE, ROUTING_KEY, Bench, bench, eventually

pytestmark = pytest.mark.haproxy

GATEWAY = gateway(internalTLS={"mode": "Operator"})
SIDES = worker_endpoint(GATEWAY), haproxy_endpoint(GATEWAY)
_BY_TENANT = {tenant: [key] for tenant, key in KEYS.items()}
Entries = dict[str, str]


@dataclass
class RealWorker:
    """A worker in the form that the bench accepts."""

    ordinal: int
    ports: tuple[int, int]


def new_certificates() -> Entries:
    return renew_entries({}, SIDES, time.time())


def write(folder: Path, side: str, shown: Entries, trusted: str) -> None:
    """Replace the files of one side, each atomically."""
    folder.mkdir(exist_ok=True)
    files = {CHAIN_FILE: shown[f"{side}.crt"], KEY_FILE: shown[f"{side}.key"], AUTHORITIES_FILE: trusted}
    for name, text in files.items():
        new = folder / "new"
        new.write_text(text)
        os.replace(new, folder / name)


def settings(folder: Path, files: Path) -> dict[str, Any]:
    (folder / "routing-key").write_text(f"{ROUTING_KEY}\n")
    return {
        "proxyProtocol": {"routingKeyFile": str(folder / "routing-key")},
        "tls": {
            "certificateFile": str(files / CHAIN_FILE),
            "privateKeyFile": str(files / KEY_FILE),
            "minVersion": "1.3",
            "clientCaFile": str(files / AUTHORITIES_FILE),
            "clientNames": [SIDES[1].host],
        },
    }


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@contextmanager
def both(
    binary: str, folder: Path, shown: Entries, trusted: str | None = None, host: str = SIDES[0].host
) -> Iterator[tuple[Bench, LocalGateway]]:
    """Run HAProxy in front of one worker; both trust the authorities in `trusted`."""
    for side in ("worker", "haproxy"):
        write(folder / side, side, shown, trusted or shown["ca.crt"])
    with local_gateway(folder / "gateway", settings=settings(folder, folder / "worker")) as worker:
        ports = port_of(worker.address), port_of(worker.admin)
        to_workers = BackendTls(
            str(folder / "haproxy" / CHAIN_FILE), str(folder / "haproxy" / AUTHORITIES_FILE), host
        )
        real: Any = RealWorker(0, ports)
        with bench(binary, folder, [real], _BY_TENANT, backend_tls=to_workers) as haproxy:
            eventually(lambda: haproxy.up() == 1, "the worker is up")
            yield haproxy, worker


def models(haproxy: Bench) -> int:
    """Return the status of a request; 0 without an answer."""
    with closing(haproxy.connect()) as connection:
        try:
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {KEYS['acme']}"})
            response = connection.getresponse()
            response.read()
            return response.status
        except OSError:
            return 0


def directly(worker: LocalGateway, context: ssl.SSLContext | None = None) -> bytes:
    """Return the worker's answer to a client other than HAProxy, even with the routing key."""
    payload = b"\x05" + len(f"{ROUTING_KEY}:acme").to_bytes(2, "big") + f"{ROUTING_KEY}:acme".encode()
    header = b"\r\n\r\n\0\r\nQUIT\n\x21\x00" + len(payload).to_bytes(2, "big") + payload
    request = f"GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEYS['acme']}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port_of(worker.address)), PATIENCE) as connection:
        connection.sendall(header)
        try:
            if context is None:
                connection.sendall(request.encode())
                return connection.recv(4096)
            with context.wrap_socket(connection, server_hostname=SIDES[0].host) as encrypted:
                encrypted.sendall(request.encode())
                return encrypted.recv(4096)
        except OSError:
            return b""


def client(trusted: str, shown: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=trusted)
    if shown is not None:
        context.load_cert_chain(shown / CHAIN_FILE, shown / KEY_FILE)
    return context


def test_requests_are_served_over_tls_and_nobody_but_haproxy_is(haproxy_binary: str, tmp_path: Path) -> None:
    shown = new_certificates()
    with both(haproxy_binary, tmp_path, shown) as (haproxy, worker):
        assert models(haproxy) == 200
        assert b"HTTP/1.1" not in directly(worker), "in clear"
        assert b"HTTP/1.1" not in directly(worker, client(shown["ca.crt"])), "a client without a certificate"
        own = client(shown["ca.crt"], tmp_path / "worker")
        assert b"HTTP/1.1" not in directly(worker, own), "a client with a worker's certificate"
        as_haproxy = client(shown["ca.crt"], tmp_path / "haproxy")
        assert directly(worker, as_haproxy).startswith(b"HTTP/1.1 200 ")
        assert models(haproxy) == 200


def test_a_worker_that_does_not_prove_its_name_gets_no_request(haproxy_binary: str, tmp_path: Path) -> None:
    with both(haproxy_binary, tmp_path, new_certificates(), host="other-workers.team.svc") as (
        haproxy,
        worker,
    ):
        assert models(haproxy) == 0
        assert not any(record["kind"] == "admission" for record in worker.records())


def test_a_worker_of_another_authority_gets_no_request(haproxy_binary: str, tmp_path: Path) -> None:
    shown, others = new_certificates(), new_certificates()
    mixed = shown | {name: others[name] for name in ("worker.crt", "worker.key")}
    with both(haproxy_binary, tmp_path, mixed) as (haproxy, _):
        assert models(haproxy) == 0


def test_certificates_and_the_authority_are_replaced_while_a_connection_goes_on(
    haproxy_binary: str, tmp_path: Path
) -> None:
    old, new = new_certificates(), new_certificates()
    trusted = old["ca.crt"] + new["ca.crt"]
    with (
        both(haproxy_binary, tmp_path, old, trusted) as (haproxy, worker),
        agent(haproxy, client_certificate=tmp_path / "haproxy" / CHAIN_FILE) as beside,
        closing(haproxy.connect()) as connection,
    ):
        process = haproxy.process

        def asked_again() -> int:
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {KEYS['acme']}"})
            response = connection.getresponse()
            response.read()
            return response.status

        def loaded() -> str:
            digest: str = json.loads(worker.admin_text("/status"))["config_digest"]
            return digest

        assert asked_again() == 200
        before, updates = loaded(), beside.metric("updates_total", target="client certificate")
        write(tmp_path / "haproxy", "haproxy", new, trusted)
        write(tmp_path / "worker", "worker", new, trusted)
        eventually(
            lambda: beside.metric("updates_total", target="client certificate") > updates,
            "HAProxy's is replaced",
        )
        eventually(lambda: loaded() != before, "the worker's is replaced")
        assert models(haproxy) == 200 and asked_again() == 200
        # From now on, only a certificate of the new authority is trusted.
        before = loaded()
        write(tmp_path / "worker", "worker", new, new["ca.crt"])
        eventually(lambda: loaded() != before, "the old authority is forgotten")
        assert models(haproxy) == 200 and asked_again() == 200
        write(tmp_path / "stranger", "haproxy", old, trusted)
        assert b"HTTP/1.1" not in directly(worker, client(trusted, tmp_path / "stranger"))
        assert haproxy.process is process and process.poll() is None
        assert "PRIVATE" not in beside.log()
