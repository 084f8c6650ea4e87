"""Changes that a running HAProxy gets from its sidecar, the worker's `proofgate gateway haproxy-sidecar`."""

import os
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from cryptography import x509

from tests.agents import NEW_KEY, agent, replace_map, tenant_of, use_weights, weights_of
from tests.certificates import write_certificate
from tests.haproxy_bench import (
    KEYS,
    PATIENCE,
    Bench,
    Worker,
    bench,
    eventually,
    write_owners,
)

pytestmark = pytest.mark.haproxy

# --- Maps


def test_a_new_key_is_known_and_an_old_one_forgotten_while_a_stream_goes_on(haproxy: Bench) -> None:
    first, second = KEYS["tenant-0"]
    with agent(haproxy), closing(haproxy.connect()) as connection:
        process = haproxy.process
        connection.request("GET", "/stream", headers={"Authorization": f"Bearer {first}"})
        stream = connection.getresponse()
        assert stream.readline() == b"data: one\n"
        where = haproxy.worker_of(second)
        replace_map(haproxy, KEYS | {"tenant-0": [second, NEW_KEY]})
        eventually(lambda: tenant_of(haproxy, NEW_KEY) == "tenant-0", "HAProxy knows the new key")
        assert tenant_of(haproxy, first) == "-"
        assert haproxy.worker_of(NEW_KEY) == haproxy.worker_of(second) == where
        for worker in haproxy.workers:
            worker.release.set()
        assert b"data: [DONE]" in stream.read()
        assert haproxy.process is process and process.poll() is None


def test_a_map_of_thousands_of_keys_is_taken_on_as_a_whole(haproxy: Bench) -> None:
    many = {f"tenant-{number}": [f"sk-many-{number}-0123456789"] for number in range(4000)}
    with agent(haproxy) as beside:
        replace_map(haproxy, many)
        eventually(
            lambda: beside.metric("entries", target="tenants.map") == 4000,
            "the agent has counted all entries",
        )
        assert tenant_of(haproxy, many["tenant-3999"][0]) == "tenant-3999"
        assert tenant_of(haproxy, KEYS["tenant-0"][0]) == "-"


def test_what_somebody_else_changes_in_haproxy_is_set_right(haproxy: Bench) -> None:
    with agent(haproxy):
        with closing(socket.socket(socket.AF_UNIX)) as runtime:
            runtime.connect(str(haproxy.runtime_socket))
            runtime.sendall(f"clear map {haproxy.tenant_map}\n".encode())
            assert runtime.recv(1024) == b"\n"
        eventually(lambda: tenant_of(haproxy, KEYS["tenant-0"][0]) == "tenant-0", "the map is back")


def test_the_agent_is_not_ready_before_a_worker_has_passed_a_check(
    haproxy_binary: str, haproxy: Bench
) -> None:
    for worker in haproxy.workers:
        worker.ready = False
    haproxy.restart(haproxy_binary)

    def found_down() -> bool:
        status, told = beside.get("/readyz")
        assert status != 200, "HAProxy treated unchecked workers as up"
        return told == "no worker is up\n"

    with agent(haproxy, waits=False) as beside:
        eventually(found_down, "HAProxy has found every worker down")
        haproxy.set_ready(len(haproxy.workers))
        eventually(beside.ready, "the agent is ready")


def test_the_agent_stays_ready_while_a_check_is_on_its_way(haproxy: Bench) -> None:
    worker = haproxy.workers[0]
    with agent(haproxy) as beside:
        worker.check_release.clear()
        worker.check_asked.clear()
        assert worker.check_asked.wait(PATIENCE)
        ready = beside.get("/readyz")
        worker.check_release.set()
        assert ready == (200, "ok\n")


def test_a_placement_is_taken_on_by_every_replica(
    haproxy_binary: str, tmp_path: Path, haproxy: Bench
) -> None:
    with (
        bench(haproxy_binary, tmp_path, list(reversed(haproxy.workers)), KEYS) as other,
        agent(haproxy),
        agent(other),
    ):
        eventually(lambda: other.up() == 3, "all workers up")
        before = {tenant: haproxy.worker_of(keys[0]) for tenant, keys in KEYS.items()}
        moved = {"tenant-0": (before["tenant-0"] + 1) % 3}
        for replica in (haproxy, other):
            write_owners(replica.owner_map, moved)
            eventually(
                lambda replica=replica: replica.worker_of(KEYS["tenant-0"][0]) == moved["tenant-0"], "moved"
            )
            assert {tenant: replica.worker_of(keys[0]) for tenant, keys in KEYS.items()} == before | moved
            write_owners(replica.owner_map, {})
            eventually(
                lambda replica=replica: replica.worker_of(KEYS["tenant-0"][0]) == before["tenant-0"], "back"
            )


# --- Weights


def table(haproxy: Bench) -> dict[str, int]:
    return {tenant: haproxy.worker_of(keys[0]) for tenant, keys in KEYS.items()}


def test_a_new_worker_takes_its_share_in_stages_on_which_every_replica_agrees_at_any_time(
    haproxy_binary: str, tmp_path: Path, haproxy: Bench
) -> None:
    haproxy.set_ready(2)
    with (
        bench(haproxy_binary, tmp_path, list(reversed(haproxy.workers)), KEYS) as other,
        agent(haproxy),
        agent(other),
    ):
        replicas = (haproxy, other)
        eventually(lambda: other.up() == 2, "two workers up")
        before = table(haproxy)
        sizes = []
        moved: set[str] = set()
        for percent in (34, 67, 100):
            for replica in replicas:
                use_weights(replica, {2: percent} if percent < 100 else {})
            if percent == 34:
                # The first stage starts before the worker is ready.
                haproxy.workers[2].ready = True
                eventually(lambda: all(replica.up() == 3 for replica in replicas), "all workers up")
            now = table(haproxy)
            assert table(other) == now
            taken = {tenant for tenant in now if now[tenant] != before[tenant]}
            assert {now[tenant] for tenant in taken} == {2}, "tenants move only to the new worker"
            assert moved < taken, "moved tenants stay with the new worker"
            moved = taken
            sizes.append(len(taken))
            other.restart(haproxy_binary)
            eventually(lambda: other.up() == 3, "all workers up")
            wanted = weights_of(haproxy)
            eventually(lambda wanted=wanted: weights_of(other) == wanted, "the weights are set again")
            assert table(other) == now
        assert sizes[0] < 0.67 * sizes[2] and sizes[1] < 0.9 * sizes[2]


def test_a_weight_of_a_worker_that_this_haproxy_has_no_line_for_is_passed_over(haproxy: Bench) -> None:
    with agent(haproxy) as beside:
        use_weights(haproxy, {2: 34, 9: 34})
        eventually(
            lambda: beside.metric("entries", target="weights.map") == 2, "the agent has loaded the file"
        )
        assert beside.ready()


def test_a_weight_that_somebody_else_sets_is_set_right(haproxy: Bench) -> None:
    with agent(haproxy):
        use_weights(haproxy, {2: 67})
        with closing(socket.socket(socket.AF_UNIX)) as runtime:
            runtime.connect(str(haproxy.runtime_socket))
            runtime.sendall(b"set server workers/worker-0 weight 1; set server workers/worker-2 weight 1\n")
            assert not runtime.recv(1024).strip()
        wanted = {"worker-0": 100, "worker-1": 100, "worker-2": 67}
        eventually(lambda: weights_of(haproxy) == wanted, "the weights are restored")


# --- The certificate


@pytest.fixture
def tls(haproxy_binary: str, tmp_path: Path, workers: list[Worker]) -> Iterator[tuple[Bench, Path]]:
    """HAProxy that terminates TLS, and the path of its certificate."""
    certificate = tmp_path / "tls.pem"
    write_certificate(certificate, name="first")
    with bench(haproxy_binary, tmp_path, workers, KEYS, certificate=certificate) as running:
        running.set_ready(3)
        yield running, certificate


def name_shown(haproxy: Bench) -> str:
    """Return the common name of the certificate that a client sees."""
    assert haproxy.context
    with (
        socket.create_connection(("127.0.0.1", haproxy.port), timeout=PATIENCE) as plain,
        haproxy.context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        [[(_, name)]] = [part for part in secure.getpeercert()["subject"] if part[0][0] == "commonName"]  # type: ignore[index]
    return str(name)


def renew(haproxy: Bench, certificate: Path, name: str) -> None:
    """Replace chain and key, one after the other, by new ones that clients also trust."""
    assert haproxy.context
    new = certificate.with_name("new.pem")
    write_certificate(new, name=name)
    haproxy.context.load_verify_locations(str(new))
    os.replace(f"{new}.key", f"{certificate}.key")
    os.replace(new, certificate)


def test_over_tls_a_tenant_reaches_the_worker_that_it_reaches_without(
    haproxy_binary: str, tmp_path: Path, tls: tuple[Bench, Path]
) -> None:
    secure, _ = tls
    with bench(haproxy_binary, tmp_path, secure.workers, KEYS) as plain:
        plain.set_ready(3)
        for tenant, keys in KEYS.items():
            assert secure.worker_of(keys[0]) == plain.worker_of(keys[0])
            assert tenant_of(secure, keys[1]) == tenant


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_a_client_that_speaks_only_an_old_tls_gets_no_connection(tls: tuple[Bench, Path]) -> None:
    haproxy, _ = tls
    assert haproxy.context
    # With a higher security level, the client itself would refuse this old version.
    haproxy.context.set_ciphers("ALL:@SECLEVEL=0")
    haproxy.context.minimum_version = ssl.TLSVersion.TLSv1
    haproxy.context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match="alert protocol version"):
        name_shown(haproxy)


def test_a_certificate_is_renewed_while_a_stream_runs_and_connections_come(tls: tuple[Bench, Path]) -> None:
    haproxy, certificate = tls
    key = KEYS["tenant-0"][0]
    failures: list[BaseException] = []
    seen: list[str] = []
    done = threading.Event()

    def connect_again_and_again() -> None:
        while not done.is_set():
            try:
                seen.append(name_shown(haproxy))
                assert haproxy.ask(key)[0] == 200
            except BaseException as error:
                failures.append(error)

    with agent(haproxy, certificate) as beside, closing(haproxy.connect()) as connection, ExitStack() as ends:
        connection.request("GET", "/stream", headers={"Authorization": f"Bearer {key}"})
        stream = connection.getresponse()
        assert stream.readline() == b"data: one\n"
        thread = threading.Thread(target=connect_again_and_again)
        thread.start()
        ends.callback(thread.join)
        ends.callback(done.set)
        eventually(lambda: "first" in seen, "a connection has seen the first certificate")
        renew(haproxy, certificate, "second")
        eventually(lambda: "second" in seen, "a connection has seen the new certificate")
        for worker in haproxy.workers:
            worker.release.set()
        assert b"data: [DONE]" in stream.read()
        assert beside.ready()
        assert beside.metric("updates_total", target="certificate") == 1
    assert failures == []
    assert seen == sorted(seen), "after the first new certificate, no old one is shown"


def test_a_certificate_that_does_not_fit_its_key_is_refused_and_the_old_one_stays(
    tls: tuple[Bench, Path],
) -> None:
    haproxy, certificate = tls
    with agent(haproxy, certificate) as beside:
        other = certificate.with_name("other.pem")
        write_certificate(other, name="other")
        shutil.copy(other, certificate)
        refused = {"target": "certificate", "reason": "refused"}
        eventually(
            lambda: beside.metric("failures_total", **refused) == 1, "the invalid certificate is refused"
        )
        assert name_shown(haproxy) == "first"
        assert beside.ready()
        assert "PRIVATE" not in beside.log()
        renew(haproxy, certificate, "second")
        eventually(lambda: name_shown(haproxy) == "second", "the next valid certificate is loaded")


def test_when_the_certificate_expires_is_a_metric(tls: tuple[Bench, Path]) -> None:
    haproxy, certificate = tls
    with agent(haproxy, certificate) as beside:
        expires = beside.metric("expires_timestamp_seconds", target="certificate")
        made = x509.load_pem_x509_certificate(certificate.read_bytes())
        assert expires == made.not_valid_after_utc.timestamp()
