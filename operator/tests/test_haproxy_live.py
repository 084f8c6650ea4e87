"""What a running HAProxy takes on from the agent beside it, which is the worker's `proofgate front-door`."""

import hashlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from e2e.ports import free_port

from tests.certificates import write_certificate
from tests.haproxy_bench import (
    KEYS,
    Bench,
    Worker,
    bench,
    eventually,
    http_get,
    write_map,
    write_owners,
    write_weights,
)

pytestmark = pytest.mark.haproxy

NEW_KEY = "sk-new-key-of-a-tenant-0123456789"


class Agent:
    """A running agent."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self._port = port
        self._log = log

    def get(self, path: str) -> tuple[int, str]:
        return http_get(self._port, path)

    def ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def metric(self, name: str, **labels: str) -> float:
        text = ",".join(f'{key}="{value}"' for key, value in labels.items())
        sought = f"proofgate_front_door_{name}{{{text}}} "
        [line] = [line for line in self.get("/metrics")[1].splitlines() if line.startswith(sought)]
        return float(line.removeprefix(sought))

    def log(self) -> str:
        return self._log.read_text()


@contextmanager
def agent(haproxy: Bench, certificate: Path | None = None, *, waits: bool = True) -> Iterator[Agent]:
    """Run the agent beside HAProxy, and wait until it is ready."""
    port = free_port()
    command = [sys.executable, "-m", "proofgate", "front-door", "--listen", f"127.0.0.1:{port}"]
    command += ["--socket", str(haproxy.runtime_socket)]
    command += ["--map", str(haproxy.tenant_map), "--map", str(haproxy.owner_map)]
    command += ["--map", str(haproxy.folder / "routing.map")]
    command += ["--weights", str(haproxy.weights)]
    if certificate:
        command += ["--certificate", str(certificate)]
    log = haproxy.folder / "agent.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    running = Agent(process, port, log)
    try:
        if waits:
            eventually(running.ready, "the agent is ready")
        yield running
    finally:
        process.terminate()
        assert process.wait(10) == 0, log.read_text()


def tenant_of(haproxy: Bench, key: str) -> str:
    tenant: str = haproxy.ask(key)[2]["tenant"]
    return tenant


def replace_map(haproxy: Bench, keys: dict[str, list[str]]) -> None:
    """Replace the file at once, as the kubelet does."""
    new = haproxy.folder / "new.map"
    write_map(new, keys)
    os.replace(new, haproxy.tenant_map)


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
        eventually(lambda: tenant_of(haproxy, NEW_KEY) == "tenant-0", "the new key is known")
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
        eventually(lambda: beside.metric("entries", target="tenants.map") == 4000, "all of them")
        assert tenant_of(haproxy, many["tenant-3999"][0]) == "tenant-3999"
        assert tenant_of(haproxy, KEYS["tenant-0"][0]) == "-"


def test_a_map_that_is_no_map_changes_nothing_and_keeps_no_pod_from_serving(haproxy: Bench) -> None:
    with agent(haproxy) as beside:
        haproxy.tenant_map.write_text(f"{'0' * 64} tenant-0; shutdown sessions\n")
        refused = {"target": "tenants.map", "reason": "refused"}
        eventually(lambda: beside.metric("failures_total", **refused) == 1, "it is refused")
        assert tenant_of(haproxy, KEYS["tenant-0"][0]) == "tenant-0"
        assert beside.ready()
        assert "line 1 is not a key and a value" in beside.log()
        replace_map(haproxy, {"tenant-0": [NEW_KEY]})
        eventually(lambda: tenant_of(haproxy, NEW_KEY) == "tenant-0", "the next good one is taken on")


def test_what_somebody_else_changes_in_haproxy_is_set_right(haproxy: Bench) -> None:
    with agent(haproxy):
        with closing(socket.socket(socket.AF_UNIX)) as runtime:
            runtime.connect(str(haproxy.runtime_socket))
            runtime.sendall(f"clear map {haproxy.tenant_map}\n".encode())
            assert runtime.recv(1024) == b"\n"
        eventually(lambda: tenant_of(haproxy, KEYS["tenant-0"][0]) == "tenant-0", "the map is back", 20)


def test_the_agent_is_not_ready_while_haproxy_does_not_answer(haproxy_binary: str, haproxy: Bench) -> None:
    with agent(haproxy) as beside:
        haproxy.process.send_signal(signal.SIGKILL)
        haproxy.process.wait()
        eventually(lambda: not beside.ready(), "the agent notices", 20)
        replace_map(haproxy, {"tenant-0": [NEW_KEY]})
        haproxy.restart(haproxy_binary)
        eventually(beside.ready, "the agent is ready again", 20)
        assert tenant_of(haproxy, NEW_KEY) == "tenant-0"


def test_the_agent_is_not_ready_before_a_worker_has_passed_a_check(
    haproxy_binary: str, haproxy: Bench
) -> None:
    for worker in haproxy.workers:
        worker.ready = False
    haproxy.restart(haproxy_binary)

    def found_down() -> bool:
        status, told = beside.get("/readyz")
        assert status != 200, "HAProxy held workers for up that it had not checked"
        return told == "no worker is up\n"

    with agent(haproxy, waits=False) as beside:
        eventually(found_down, "HAProxy has found every worker down")
        haproxy.set_ready(len(haproxy.workers))
        eventually(beside.ready, "the agent is ready")


def test_haproxy_that_starts_while_no_worker_is_up_is_ready_and_tells_clients_when_to_come_back(
    haproxy_binary: str, haproxy: Bench
) -> None:
    for worker in haproxy.workers:
        worker.ready = False
    haproxy.restart(haproxy_binary)
    with agent(haproxy, waits=False) as beside:
        eventually(beside.ready, "the agent is ready", 30)
        status, headers, body = haproxy.ask(KEYS["tenant-0"][0])
        assert status == 503 and body["error"]["code"] == "no_worker_available"
        assert headers["retry-after"] == "1"


def test_the_agent_stays_ready_while_a_check_is_on_its_way(haproxy: Bench) -> None:
    worker = haproxy.workers[0]
    with agent(haproxy) as beside:
        worker.check_release.clear()
        worker.check_asked.clear()
        assert worker.check_asked.wait(10)
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


def weights_of(haproxy: Bench) -> dict[str, int]:
    """Return the weight of every worker, as HAProxy has it."""
    with closing(socket.socket(socket.AF_UNIX)) as runtime:
        runtime.connect(str(haproxy.runtime_socket))
        runtime.sendall(b"show servers state workers\n")
        text = b""
        while piece := runtime.recv(65536):
            text += piece
    rows = [line.split() for line in text.decode().splitlines()[1:] if line]
    name, weight = rows[0].index("srv_name") - 1, rows[0].index("srv_uweight") - 1
    return {row[name]: int(row[weight]) for row in rows[1:]}


def use_weights(haproxy: Bench, weights: dict[int, int]) -> None:
    """Change the file, and wait until HAProxy goes by it."""
    new = haproxy.folder / "new.map"
    write_weights(new, weights)
    os.replace(new, haproxy.weights)
    wanted = {f"worker-{ordinal}": weights.get(ordinal, 100) for ordinal in range(3)}
    eventually(lambda: weights_of(haproxy) == wanted, f"weights {wanted}")


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
                # The first stage is there before the worker is.
                haproxy.workers[2].ready = True
                eventually(lambda: all(replica.up() == 3 for replica in replicas), "all workers up")
            now = table(haproxy)
            assert table(other) == now
            taken = {tenant for tenant in now if now[tenant] != before[tenant]}
            assert {now[tenant] for tenant in taken} == {2}, "only the new worker's share moves"
            assert moved < taken, "and what has moved stays"
            moved = taken
            sizes.append(len(taken))
            other.restart(haproxy_binary)
            eventually(lambda: other.up() == 3, "all workers up")
            wanted = weights_of(haproxy)
            eventually(lambda wanted=wanted: weights_of(other) == wanted, "the weights are set again")
            assert table(other) == now
        assert sizes[0] < 0.67 * sizes[2] and sizes[1] < 0.9 * sizes[2]


def test_the_agent_is_not_ready_before_haproxy_has_the_weights(haproxy: Bench) -> None:
    haproxy.weights.write_text("worker-1 x\n")
    with ExitStack() as ends:
        beside = ends.enter_context(agent(haproxy, waits=False))
        eventually(lambda: beside.get("/readyz") == (503, "behind: weights.map\n"), "it is behind")
        refused = {"target": "weights.map", "reason": "refused"}
        assert beside.metric("failures_total", **refused) == 1
        use_weights(haproxy, {1: 34})
        eventually(beside.ready, "the agent is ready")


def test_a_weight_of_a_worker_that_this_haproxy_has_no_line_for_is_passed_over(haproxy: Bench) -> None:
    with agent(haproxy) as beside:
        use_weights(haproxy, {2: 34, 9: 34})
        eventually(lambda: beside.metric("entries", target="weights.map") == 2, "the file is taken on")
        assert beside.ready()


def test_a_weight_that_somebody_else_sets_is_set_right(haproxy: Bench) -> None:
    with agent(haproxy):
        use_weights(haproxy, {2: 67})
        with closing(socket.socket(socket.AF_UNIX)) as runtime:
            runtime.connect(str(haproxy.runtime_socket))
            runtime.sendall(b"set server workers/worker-0 weight 1; set server workers/worker-2 weight 1\n")
            assert not runtime.recv(1024).strip()
        wanted = {"worker-0": 100, "worker-1": 100, "worker-2": 67}
        eventually(lambda: weights_of(haproxy) == wanted, "the weights are back", 20)


def test_no_digest_of_a_key_is_in_the_agents_log_as_a_whole(haproxy: Bench) -> None:
    with agent(haproxy) as beside:
        replace_map(haproxy, KEYS | {"tenant-0": [NEW_KEY]})
        eventually(lambda: tenant_of(haproxy, NEW_KEY) == "tenant-0", "the new key is known")
        digest = hashlib.sha256(NEW_KEY.encode()).hexdigest()
        eventually(lambda: f"+{digest[:8]} " in beside.log(), "the change is logged")
        assert not re.search(r"[0-9a-f]{9}", beside.log().replace(str(haproxy.folder), ""))


# --- The certificate


@pytest.fixture
def tls(haproxy_binary: str, tmp_path: Path, workers: list[Worker]) -> Iterator[tuple[Bench, Path]]:
    """HAProxy that ends TLS, and the path of its certificate."""
    certificate = tmp_path / "tls.pem"
    write_certificate(certificate, name="first")
    with bench(haproxy_binary, tmp_path, workers, KEYS, certificate=certificate) as running:
        running.set_ready(3)
        yield running, certificate


def name_shown(haproxy: Bench) -> str:
    """Return the common name of the certificate that a client sees."""
    assert haproxy.context
    with (
        socket.create_connection(("127.0.0.1", haproxy.port), timeout=10) as plain,
        haproxy.context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        [[(_, name)]] = [part for part in secure.getpeercert()["subject"] if part[0][0] == "commonName"]  # type: ignore[index]
    return str(name)


def renew(haproxy: Bench, certificate: Path, name: str) -> None:
    """Replace chain and key, one after the other, with ones that clients trust as well."""
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
    # Without a lower security level, the client itself would refuse to speak so old a version.
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
        eventually(lambda: "first" in seen, "connections come")
        renew(haproxy, certificate, "second")
        eventually(lambda: "second" in seen, "the new certificate is shown", 20)
        for worker in haproxy.workers:
            worker.release.set()
        assert b"data: [DONE]" in stream.read()
        assert beside.ready()
        assert beside.metric("updates_total", target="certificate") == 1
    assert failures == []
    assert seen == sorted(seen), "once the new one is shown, the old one is gone"


def test_a_certificate_that_does_not_fit_its_key_is_refused_and_the_old_one_stays(
    tls: tuple[Bench, Path],
) -> None:
    haproxy, certificate = tls
    with agent(haproxy, certificate) as beside:
        other = certificate.with_name("other.pem")
        write_certificate(other, name="other")
        shutil.copy(other, certificate)
        refused = {"target": "certificate", "reason": "refused"}
        eventually(lambda: beside.metric("failures_total", **refused) == 1, "it is refused", 20)
        assert name_shown(haproxy) == "first"
        assert beside.ready()
        assert "PRIVATE" not in beside.log()
        renew(haproxy, certificate, "second")
        eventually(lambda: name_shown(haproxy) == "second", "the next good one is taken on", 20)


def test_when_the_certificate_expires_is_a_metric(tls: tuple[Bench, Path]) -> None:
    haproxy, certificate = tls
    with agent(haproxy, certificate) as beside:
        expires = beside.metric("expires_timestamp_seconds", target="certificate")
        made = certificate.stat().st_mtime
        assert 0 < expires - made < 3 * 86_400
