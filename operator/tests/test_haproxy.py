"""What a real HAProxy makes of the rendered configuration."""

import http.client
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proofgate_operator.build.haproxy import rendered_config
from tests.gateways import DEFAULTS, gateway
from tests.haproxy_bench import Bench, NameServer, Worker, bench, eventually, keys_of, write_map

pytestmark = pytest.mark.haproxy

TENANTS = 150
KEYS = keys_of(TENANTS)
FIRST = KEYS["tenant-0"][0]


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    made = [Worker(ordinal) for ordinal in range(3)]
    yield made
    for worker in made:
        worker.close()


@pytest.fixture
def haproxy(haproxy_binary: str, tmp_path: Path, workers: list[Worker]) -> Iterator[Bench]:
    with bench(haproxy_binary, tmp_path, workers, KEYS) as running:
        running.set_ready(3)
        yield running


def table(haproxy: Bench, which: int = 0) -> dict[str, int]:
    """Return the worker of every tenant, found with its first or second key."""
    return {tenant: haproxy.worker_of(keys[which]) for tenant, keys in KEYS.items()}


@pytest.mark.parametrize("replicas", [1, 2, 64])
def test_the_configuration_of_a_gateway_loads(haproxy_binary: str, tmp_path: Path, replicas: int) -> None:
    write_map(tmp_path / "tenants.map", KEYS)
    text = rendered_config(gateway(replicas=replicas), DEFAULTS)
    config = tmp_path / "haproxy.cfg"
    config.write_text(text.replace("/etc/proofgate-tenants", str(tmp_path)))
    result = subprocess.run([haproxy_binary, "-c", "-f", str(config)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "[WARNING]" not in result.stderr


def test_a_tenant_has_one_worker_whatever_key_it_uses(haproxy: Bench) -> None:
    assert table(haproxy, 0) == table(haproxy, 1)


def test_every_worker_has_its_share(haproxy: Bench) -> None:
    shares = list(table(haproxy).values())
    assert all(shares.count(ordinal) > TENANTS / 6 for ordinal in range(3))


def test_scaling_moves_only_the_share_that_it_must(haproxy: Bench) -> None:
    haproxy.set_ready(2)
    two = table(haproxy)
    haproxy.set_ready(3)
    three = table(haproxy)
    moved = [tenant for tenant in two if two[tenant] != three[tenant]]
    assert all(three[tenant] == 2 for tenant in moved), "a tenant moves to the new worker or not at all"
    assert len(moved) < TENANTS * 0.43
    haproxy.set_ready(2)
    assert table(haproxy) == two


def test_two_haproxies_agree(haproxy: Bench, haproxy_binary: str, tmp_path: Path) -> None:
    with bench(haproxy_binary, tmp_path, list(reversed(haproxy.workers)), KEYS) as other:
        eventually(lambda: other.up() == 3, "all workers up")
        assert table(other) == table(haproxy)


@pytest.mark.parametrize("key", [None, "sk-nobody-knows-0123456789", ""])
def test_without_a_known_key_the_answer_is_401_and_the_connection_ends(
    haproxy: Bench, key: str | None
) -> None:
    status, headers, body = haproxy.ask(key)
    assert status == 401
    assert headers["connection"] == "close"
    assert headers["content-type"] == "application/json"
    assert body == {
        "error": {
            "message": "Incorrect API key provided.",
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_api_key",
        }
    }
    assert sum(worker.seen for worker in haproxy.workers) == 0


def test_a_tenant_named_by_the_client_is_ignored(haproxy: Bench) -> None:
    mine = haproxy.worker_of(FIRST)
    _, _, body = haproxy.ask(FIRST, X_Proofgate_Tenant="tenant-1", x_proofgate_shard="2")
    assert body["worker"] == mine
    assert [name for name in body["headers"] if name.startswith("x-proofgate")] == []


def request(*headers: str, line: str = "GET / HTTP/1.1") -> bytes:
    return "\r\n".join([line, *headers, "", ""]).encode()


def test_two_authorization_headers_are_refused(haproxy: Bench) -> None:
    answer = haproxy.raw(
        request("Host: gw", f"Authorization: Bearer {FIRST}", f"Authorization: Bearer {KEYS['tenant-1'][0]}")
    )
    assert answer.startswith(b"HTTP/1.1 400") and b"duplicate_authorization" in answer


@pytest.mark.parametrize(
    "headers",
    [("Host: gw", "Host: other"), (), ("Host: gw", "X_Bad.Name@: 1")],
    ids=["two hosts", "no host", "a name that is no token"],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(haproxy: Bench, headers: tuple[str, ...]) -> None:
    answer = haproxy.raw(request(*headers, f"Authorization: Bearer {FIRST}", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 400")
    assert sum(worker.seen for worker in haproxy.workers) == 0


def test_http_1_0_is_refused(haproxy: Bench) -> None:
    answer = haproxy.raw(request("Host: gw", f"Authorization: Bearer {FIRST}", line="GET / HTTP/1.0"))
    assert b" 400 " in answer.splitlines()[0]


def test_http_2_by_prior_knowledge_is_refused(haproxy: Bench) -> None:
    answer = haproxy.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
    assert answer.startswith(b"HTTP/1.1 400")


def test_without_a_worker_the_answer_is_503_and_says_when_to_come_back(haproxy: Bench) -> None:
    assert haproxy.metrics("/readyz")[0] == 200
    haproxy.set_ready(0)
    status, headers, body = haproxy.ask(FIRST)
    assert (status, body["error"]["code"]) == (503, "no_worker_available")
    assert headers["retry-after"] == "1"
    assert haproxy.metrics("/readyz")[0] == 503
    assert haproxy.metrics("/healthz")[0] == 200


def test_a_request_that_reached_a_worker_is_never_sent_again(haproxy: Bench) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", haproxy.port, timeout=10)) as connection:
        connection.request("POST", "/", body=b"{}", headers={"Authorization": f"Bearer {FIRST}"})
        response = connection.getresponse()
        assert response.status == 502
        assert json.loads(response.read())["error"]["code"] == "worker_failed"
    assert sum(worker.seen for worker in haproxy.workers) == 1


def test_a_stream_passes_as_it_comes_and_a_stopping_haproxy_finishes_it(haproxy: Bench) -> None:
    with (
        closing(http.client.HTTPConnection("127.0.0.1", haproxy.port, timeout=10)) as idle,
        closing(http.client.HTTPConnection("127.0.0.1", haproxy.port, timeout=10)) as stream,
    ):
        idle.request("GET", "/", headers={"Authorization": f"Bearer {FIRST}"})
        idle.getresponse().read()  # stays open, unused
        stream.request("GET", "/stream", headers={"Authorization": f"Bearer {FIRST}"})
        response = stream.getresponse()
        assert response.readline() == b"data: one\n"
        haproxy.process.send_signal(signal.SIGUSR1)
        eventually(lambda: haproxy.metrics("/healthz")[0] == 0, "HAProxy no longer listens")
        assert haproxy.process.poll() is None
        for worker in haproxy.workers:
            worker.release.set()
        assert b"data: [DONE]" in response.read()
        stream.close()
        eventually(lambda: haproxy.process.poll() is not None, "HAProxy ends after its last stream")


@pytest.fixture
def named(haproxy_binary: str, tmp_path: Path) -> Iterator[tuple[Bench, NameServer]]:
    """HAProxy with eight server lines that are names, of which the name server knows two."""
    first = Worker(0, "127.0.0.20")
    made = [first, *(Worker(ordinal, f"127.0.0.2{ordinal}", first.port) for ordinal in (1, 2))]
    names = NameServer()
    names.addresses = {"worker-0.test": "127.0.0.20", "worker-1.test": "127.0.0.21"}
    lines = [f"worker-{ordinal}.test" for ordinal in range(8)]
    with bench(haproxy_binary, tmp_path, made, KEYS, names=lines, name_server=names) as running:
        eventually(lambda: running.up() == 2, "the two workers that have an address are up")
        yield running, names
    names.close()
    for worker in made:
        worker.close()


def test_a_line_without_an_address_equals_an_absent_one(named: tuple[Bench, NameServer]) -> None:
    haproxy, names = named
    two = table(haproxy)
    assert set(two.values()) == {0, 1}
    names.addresses["worker-2.test"] = "127.0.0.22"
    eventually(lambda: haproxy.up() == 3, "the third worker is up, and HAProxy was not told")
    moved = {tenant: worker for tenant, worker in table(haproxy).items() if worker != two[tenant]}
    assert set(moved.values()) == {2} and len(moved) < TENANTS * 0.43
    del names.addresses["worker-2.test"]
    eventually(lambda: haproxy.up() == 2, "the third worker is gone", 20)
    assert table(haproxy) == two


def test_a_worker_with_a_new_address_keeps_its_tenants(named: tuple[Bench, NameServer]) -> None:
    haproxy, names = named
    before = table(haproxy)
    haproxy.workers[1].ready = False  # the pod is replaced, and its connections end
    names.addresses["worker-1.test"] = "127.0.0.22"
    mine = next(tenant for tenant, worker in before.items() if worker == 1)
    eventually(lambda: haproxy.worker_of(KEYS[mine][0]) == 2, "the new address is used")
    eventually(lambda: haproxy.up() == 2, "both workers up")
    lives_at = {0: 0, 1: 2}
    assert table(haproxy) == {tenant: lives_at[worker] for tenant, worker in before.items()}
