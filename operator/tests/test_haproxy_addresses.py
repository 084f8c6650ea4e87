"""A running HAProxy follows workers to their addresses and never uses a former address.

While answers are cached, a cluster's name server may return addresses of deleted pods.
"""

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from proofgate.haproxy_sidecar.addresses import WorkerAddresses
from proofgate.haproxy_sidecar.follower import SyncLoop
from proofgate.haproxy_sidecar.name_resolver import NameResolver
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi

from tests.agents import Agent, agent, weights_of
from tests.haproxy_bench import KEYS, Bench, Worker, bench, eventually, write_addresses, write_weights

pytestmark = pytest.mark.haproxy

FIRST, SECOND, THIRD = (f"127.0.0.2{number}" for number in range(3))


@pytest.fixture
def unset(haproxy_binary: str, tmp_path: Path) -> Iterator[Bench]:
    """HAProxy with eight server lines that are host names, in front of three workers with an address each."""
    first = Worker(0, FIRST)
    made = [first, *(Worker(ordinal, f"127.0.0.2{ordinal}", first.ports) for ordinal in (1, 2))]
    lines = [f"worker-{ordinal}.test" for ordinal in range(8)]
    try:
        with bench(haproxy_binary, tmp_path, made, KEYS, names=lines) as running:
            yield running
    finally:
        for worker in made:
            worker.close()


@pytest.fixture
def placed(unset: Bench) -> Iterator[tuple[Bench, Agent]]:
    """The same HAProxy with an agent that has the addresses of two workers."""
    write_addresses(unset.addresses, {0: FIRST, 1: SECOND})
    with agent(unset) as beside:
        eventually(lambda: unset.up() == 2, "the two workers that have an address are up")
        yield unset, beside


def table(haproxy: Bench) -> dict[str, int]:
    """Return the worker that receives each tenant's connections."""
    return {tenant: haproxy.worker_of(keys[0]) for tenant, keys in KEYS.items()}


def states(beside: Agent) -> dict[str, tuple[str | None, str]]:
    """Return the agent's report on the workers that are not in maintenance."""
    status, text = beside.get("/workers")
    assert status == 200
    found = {item["name"]: (item["address"], item["state"]) for item in json.loads(text)["workers"]}
    return {name: line for name, line in found.items() if line[1] != "maintenance"}


def test_a_line_without_an_address_equals_an_absent_one(placed: tuple[Bench, Agent]) -> None:
    haproxy, beside = placed
    two = table(haproxy)
    assert set(two.values()) == {0, 1}
    write_addresses(haproxy.addresses, {0: FIRST, 1: SECOND, 2: THIRD})
    eventually(lambda: haproxy.up() == 3, "the third worker is up without a restart of HAProxy")
    moved = {tenant: worker for tenant, worker in table(haproxy).items() if worker != two[tenant]}
    assert set(moved.values()) == {2} and len(moved) < len(KEYS) * 0.43
    write_addresses(haproxy.addresses, {0: FIRST, 1: SECOND})
    eventually(lambda: "worker-2" not in states(beside), "the third worker is gone")
    assert table(haproxy) == two


def test_a_worker_with_a_new_address_keeps_its_tenants(placed: tuple[Bench, Agent]) -> None:
    haproxy, beside = placed
    before = table(haproxy)
    write_addresses(haproxy.addresses, {0: FIRST, 1: THIRD})
    eventually(lambda: states(beside)["worker-1"] == (THIRD, "up"), "the worker is up at its new address")
    lives_at = {0: 0, 1: 2}
    assert table(haproxy) == {tenant: lives_at[worker] for tenant, worker in before.items()}


def test_a_restarted_haproxy_sends_every_tenant_where_it_was(
    haproxy_binary: str, placed: tuple[Bench, Agent]
) -> None:
    haproxy, beside = placed
    before = table(haproxy)
    haproxy.restart(haproxy_binary)
    eventually(beside.ready, "the agent is ready")
    eventually(lambda: haproxy.up() == 2, "both workers up")
    assert table(haproxy) == before


def test_a_haproxy_that_starts_knows_its_workers_before_anybody_tells_it(
    haproxy_binary: str, placed: tuple[Bench, Agent]
) -> None:
    haproxy, beside = placed
    write_weights(haproxy.weights, {1: 34})
    eventually(lambda: weights_of(haproxy)["worker-1"] == 34, "the second worker has a small share")
    before = table(haproxy)
    weighed = f"worker-1 {SECOND} 2 4 34 100"
    eventually(lambda: weighed in haproxy.server_state.read_text(), "the state file has HAProxy's servers")
    with beside.frozen():
        haproxy.restart(haproxy_binary)
        assert table(haproxy) == before
        assert weights_of(haproxy)["worker-1"] == 34


def test_no_request_is_turned_away_once_a_killed_haproxy_accepts_connections_again(
    haproxy_binary: str, placed: tuple[Bench, Agent]
) -> None:
    haproxy, _ = placed
    state = haproxy.server_state
    answers: list[int] = []
    done = threading.Event()

    def ask_again_and_again() -> None:
        while not done.is_set():
            with suppress(OSError, http.client.HTTPException):
                answers.append(haproxy.ask(KEYS["tenant-0"][0])[0])

    thread = threading.Thread(target=ask_again_and_again)
    thread.start()
    try:
        for _ in range(5):
            eventually(lambda: SECOND in state.read_text(), "the state file has HAProxy's servers")
            haproxy.stop()
            answers.clear()
            haproxy.start(haproxy_binary)
            eventually(lambda: len(answers) > 20, "requests are answered again")
            assert set(answers) == {200}
    finally:
        done.set()
        thread.join()


def test_a_worker_that_moves_while_haproxy_is_dead_is_sent_nothing_where_it_was(
    haproxy_binary: str, placed: tuple[Bench, Agent]
) -> None:
    haproxy, beside = placed
    eventually(lambda: SECOND in haproxy.server_state.read_text(), "the state file has HAProxy's servers")
    haproxy.stop()
    write_addresses(haproxy.addresses, {0: FIRST, 1: THIRD})
    eventually(lambda: SECOND not in haproxy.server_state.read_text(), "the agent removes the old address")
    seen = haproxy.workers[1].seen
    with beside.frozen():
        haproxy.start(haproxy_binary)
        assert set(table(haproxy).values()) == {0}
    eventually(lambda: states(beside).get("worker-1") == (THIRD, "up"), "its new address is set")
    assert set(table(haproxy).values()) == {0, 2} and haproxy.workers[1].seen == seen


def test_a_worker_that_is_down_is_not_up_in_a_haproxy_that_starts(
    haproxy_binary: str, placed: tuple[Bench, Agent]
) -> None:
    haproxy, beside = placed
    haproxy.workers[1].ready = False
    eventually(lambda: SECOND not in haproxy.server_state.read_text(), "the worker is down")
    with beside.frozen():
        haproxy.restart(haproxy_binary)
        assert haproxy.up() == 1
    eventually(lambda: states(beside).get("worker-1") == (SECOND, "down"), "HAProxy checks the worker again")


@pytest.mark.parametrize(
    "text",
    ["", "1\n", "no state\n", "1\n# be_id\n4 workers 1 worker-0 127.0.0.1", "\0\x7f\n", "2\n4 workers 2\n"],
    ids=["empty", "nobody", "foreign", "torn", "binary", "version"],
)
def test_a_file_that_holds_no_servers_keeps_haproxy_from_nothing(
    haproxy_binary: str, unset: Bench, text: str
) -> None:
    unset.server_state.write_text(text)
    unset.restart(haproxy_binary)
    assert unset.ask(KEYS["tenant-0"][0])[0] == 503
    write_addresses(unset.addresses, {0: FIRST, 1: SECOND})
    with agent(unset):
        eventually(lambda: unset.up() == 2, "both workers are found")
        eventually(lambda: SECOND in unset.server_state.read_text(), "the file is replaced")
        assert set(table(unset).values()) == {0, 1}


def test_an_agent_that_starts_while_haproxy_is_dead_forgets_what_is_not_so_any_more(
    haproxy_binary: str, unset: Bench
) -> None:
    write_addresses(unset.addresses, {0: FIRST, 1: SECOND})
    with agent(unset):
        eventually(lambda: SECOND in unset.server_state.read_text(), "the state file has HAProxy's servers")
    unset.stop()
    write_addresses(unset.addresses, {0: FIRST, 1: THIRD})
    with agent(unset, waits=False) as beside:
        eventually(
            lambda: SECOND not in unset.server_state.read_text(), "the new agent removes the old address"
        )
        assert FIRST in unset.server_state.read_text()
        with beside.frozen():
            unset.start(haproxy_binary)
            assert set(table(unset).values()) == {0}


def test_an_address_that_another_pod_may_have_by_now_is_sent_nothing(placed: tuple[Bench, Agent]) -> None:
    haproxy, beside = placed
    write_addresses(haproxy.addresses, {0: FIRST, 1: None})
    eventually(lambda: "worker-1" not in states(beside), "the second worker is in maintenance")
    # The process at the old address still passes every check.
    seen = haproxy.workers[1].seen
    assert set(table(haproxy).values()) == {0}
    assert haproxy.workers[1].seen == seen


def test_a_new_worker_gets_no_connection_before_it_has_passed_its_checks(placed: tuple[Bench, Agent]) -> None:
    haproxy, beside = placed
    haproxy.workers[2].ready = False
    haproxy.workers[2].refuse_connections()
    write_addresses(haproxy.addresses, {0: FIRST, 1: SECOND, 2: THIRD})
    eventually(lambda: states(beside).get("worker-2") == (THIRD, "down"), "the new worker is known and down")
    assert set(table(haproxy).values()) == {0, 1}
    assert all(line["worker"] != "worker-2" and line["retries"] in (0, "0") for line in haproxy.log())


def test_a_stream_goes_on_while_its_worker_loses_its_address(placed: tuple[Bench, Agent]) -> None:
    haproxy, beside = placed
    tenant = next(tenant for tenant, worker in table(haproxy).items() if worker == 1)
    with closing(haproxy.connect()) as connection:
        connection.request("GET", "/stream", headers={"Authorization": f"Bearer {KEYS[tenant][0]}"})
        stream = connection.getresponse()
        assert stream.readline() == b"data: one\n"
        write_addresses(haproxy.addresses, {0: FIRST, 1: None})
        eventually(lambda: "worker-1" not in states(beside), "its worker is in maintenance")
        assert haproxy.worker_of(KEYS[tenant][0]) == 0, "new connections go to another worker"
        write_addresses(haproxy.addresses, {0: FIRST, 1: THIRD})
        eventually(lambda: states(beside).get("worker-1") == (THIRD, "up"), "its successor is up")
        haproxy.workers[1].release.set()
        assert b"data: [DONE]" in stream.read()


# --- A name server with old answers


class StaleNames:
    """A name server with answers as old as its cache permits."""

    def __init__(self, **addresses: str) -> None:
        self.addresses = {f"{name.replace('_', '-')}.test": found for name, found in addresses.items()}
        self.asked: list[str] = []

    def look_up(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        return [self.addresses[host]] if host in self.addresses else []


@contextmanager
def follower(haproxy: Bench, names: StaleNames) -> Iterator[None]:
    """Follow the addresses in this process, with another name server."""
    target = WorkerAddresses(
        haproxy.addresses, RuntimeApi(haproxy.runtime_socket), NameResolver(names.look_up)
    )
    loop = asyncio.new_event_loop()
    following = loop.create_task(SyncLoop([target]).run())

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(following)
        except asyncio.CancelledError:
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(following.cancel)
        thread.join()


def test_what_is_written_wins_over_a_name_server_that_tells_of_pods_that_are_gone(unset: Bench) -> None:
    names = StaleNames(worker_0=FIRST, worker_1=SECOND)
    write_addresses(unset.addresses, {0: FIRST, 1: SECOND})
    with follower(unset, names):
        eventually(lambda: unset.up() == 2, "both workers are found")
        # The second worker's pod is replaced, and another pod gets its old address.
        write_addresses(unset.addresses, {0: FIRST, 1: None})
        eventually(lambda: set(table(unset).values()) == {0}, "the deleted pod gets no connections")
        write_addresses(unset.addresses, {0: FIRST, 1: THIRD})
        eventually(lambda: set(table(unset).values()) == {0, 2}, "its successor is found")
        seen = unset.workers[1].seen
        assert set(table(unset).values()) == {0, 2} and unset.workers[1].seen == seen
    assert names.asked == []


def test_without_a_file_names_lead_to_workers(unset: Bench) -> None:
    names = StaleNames(worker_0=FIRST, worker_1=SECOND)
    with follower(unset, names):
        eventually(lambda: unset.up() == 2, "both workers are found by name")
        assert set(table(unset).values()) == {0, 1}
        names.addresses["worker-1.test"] = THIRD
        unset.workers[1].ready = False
        eventually(lambda: set(table(unset).values()) == {0, 2}, "the worker is found at its new address")
