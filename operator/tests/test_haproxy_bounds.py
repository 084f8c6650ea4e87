"""A real HAProxy at its limits, with assigned tenants, and its access log."""

import http.client
import json
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from proofgate_operator.build.haproxy_config import ConnectionLimits
from tests.haproxy_bench import PATIENCE, Bench, Worker, bench, eventually, keys_of

pytestmark = pytest.mark.haproxy

KEYS = keys_of(30)
UNKNOWN = "sk-nobody-knows-0123456789"


def table(haproxy: Bench) -> dict[str, int]:
    return {tenant: haproxy.worker_of(keys[0]) for tenant, keys in KEYS.items()}


@contextmanager
def streaming(haproxy: Bench, key: str) -> Iterator[http.client.HTTPResponse]:
    """Yield a stream after its first event, on a separate connection."""
    with closing(haproxy.connect()) as connection:
        connection.request("GET", "/stream", headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        assert response.readline() == b"data: one\n"
        yield response


def refusal(answer: tuple[int, dict[str, str], Any]) -> tuple[int, str, str]:
    status, headers, body = answer
    assert body["error"].keys() == {"message", "type", "param", "code"}
    return status, headers["retry-after"], body["error"]["code"]


# --- Owners


def test_a_placed_tenant_goes_where_it_is_placed_and_no_other_moves(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS) as plain:
        plain.set_ready(3)
        before = table(plain)
    placed = {"tenant-0": (before["tenant-0"] + 1) % 3, "tenant-1": before["tenant-1"]}
    with bench(haproxy_binary, tmp_path, workers, KEYS, owners=placed) as haproxy:
        haproxy.set_ready(3)
        assert table(haproxy) == before | placed


def test_while_its_worker_is_away_a_placed_tenant_is_served_by_another(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS, owners={"tenant-0": 2}) as haproxy:
        haproxy.set_ready(3)
        assert haproxy.worker_of(KEYS["tenant-0"][0]) == 2
        haproxy.set_ready(2)
        assert haproxy.worker_of(KEYS["tenant-0"][0]) in (0, 1)
        haproxy.set_ready(3)
        assert haproxy.worker_of(KEYS["tenant-0"][0]) == 2


@contextmanager
def waiting(haproxy: Bench) -> Iterator[tuple[Worker, http.client.HTTPConnection]]:
    """Yield a connection that waits for its owner, which is up in HAProxy but refuses every connection."""
    [key, *_] = KEYS["tenant-0"]
    owner = haproxy.workers[haproxy.worker_of(key)]
    owner.refuse_connections()
    with closing(haproxy.connect()) as connection:
        connection.request("GET", "/", headers={"Authorization": f"Bearer {key}"})
        yield owner, connection


def test_a_connection_that_waits_for_a_worker_that_dies_is_served_by_another(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    # HAProxy retries long enough for a busy machine to find that the worker is down.
    with bench(haproxy_binary, tmp_path, workers, KEYS, retries=PATIENCE) as haproxy:
        haproxy.set_ready(3)
        with waiting(haproxy) as (owner, connection):
            owner.ready = False
            assert json.load(connection.getresponse())["worker"] != owner.ordinal


def test_a_worker_that_is_up_keeps_its_tenants_even_if_it_cannot_be_reached(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS) as haproxy:
        haproxy.set_ready(3)
        closed = pytest.raises((http.client.RemoteDisconnected, ConnectionResetError))
        with waiting(haproxy) as (_, connection), closed:
            connection.getresponse()
        assert sum(worker.seen for worker in workers) == 1


def test_where_affinity_is_required_tenants_of_an_absent_worker_are_told_to_come_back(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    owners = {tenant: number % 3 for number, tenant in enumerate(KEYS)}
    with bench(haproxy_binary, tmp_path, workers, KEYS, owners=owners, requires_owner=True) as haproxy:
        haproxy.set_ready(3)
        assert table(haproxy) == owners
        haproxy.set_ready(2)
        for tenant, owner in owners.items():
            answer = haproxy.ask(KEYS[tenant][0])
            if owner == 2:
                assert refusal(answer) == (503, "1", "no_worker_available")
            else:
                assert answer[2]["worker"] == owner
        assert haproxy.ask(UNKNOWN)[0] == 200, "any worker may refuse a key without an owner"
        haproxy.set_ready(3)
        assert table(haproxy) == owners


def test_where_affinity_is_required_a_stand_in_serves_while_the_owner_is_away_and_nobody_else(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    owners = {tenant: number % 3 for number, tenant in enumerate(KEYS)}
    stand_ins = {tenant: 1 for tenant, owner in owners.items() if owner == 2 and tenant != "tenant-2"}
    with bench(
        haproxy_binary, tmp_path, workers, KEYS, owners=owners, stand_ins=stand_ins, requires_owner=True
    ) as haproxy:
        haproxy.set_ready(3)
        assert table(haproxy) == owners
        haproxy.set_ready(2)
        assert refusal(haproxy.ask(KEYS["tenant-2"][0])) == (503, "1", "no_worker_available")
        without = {tenant: keys for tenant, keys in KEYS.items() if tenant != "tenant-2"}
        assert {tenant: haproxy.worker_of(keys[0]) for tenant, keys in without.items()} == {
            tenant: stand_ins.get(tenant, owners[tenant]) for tenant in without
        }
        haproxy.set_ready(1)
        assert refusal(haproxy.ask(KEYS["tenant-5"][0])) == (503, "1", "no_worker_available")
        assert haproxy.worker_of(KEYS["tenant-0"][0]) == 0
        haproxy.set_ready(3)
        assert table(haproxy) == owners


def test_a_stand_in_serves_for_an_owner_without_a_server_line(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    """A HAProxy that was started for fewer workers has no server line for a new worker yet."""
    owners, stand_ins = dict.fromkeys(KEYS, 9), dict.fromkeys(KEYS, 1)
    with bench(
        haproxy_binary, tmp_path, workers, KEYS, owners=owners, stand_ins=stand_ins, requires_owner=True
    ) as haproxy:
        haproxy.set_ready(3)
        assert table(haproxy) == stand_ins


def test_an_owner_without_a_server_line_leaves_the_choice_to_the_ring(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS, owners={"tenant-0": 9}) as haproxy:
        haproxy.set_ready(3)
        assert haproxy.ask(KEYS["tenant-0"][0])[0] == 200


# --- Limits


def test_a_full_worker_is_waited_for_and_no_other_is_asked(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    bounds = ConnectionLimits(max_total=100, max_per_server=2, max_queued=8)
    with (
        bench(haproxy_binary, tmp_path, workers, KEYS, connection_limits=bounds) as haproxy,
        ExitStack() as held,
    ):
        haproxy.set_ready(3)
        key = KEYS["tenant-0"][0]
        owner = haproxy.worker_of(key)
        for _ in range(2):
            held.enter_context(streaming(haproxy, key))
        with closing(haproxy.connect()) as waiting:
            waiting.request("GET", "/", headers={"Authorization": f"Bearer {key}"})
            eventually(lambda: queued(haproxy) == 1, "the connection waits")
            workers[owner].release.set()
            held.close()
            assert json.loads(waiting.getresponse().read())["worker"] == owner


def test_beyond_the_queue_of_its_worker_a_tenant_is_told_to_come_back_and_others_are_served(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    bounds = ConnectionLimits(max_total=100, max_per_server=1, max_queued=2)
    with (
        bench(haproxy_binary, tmp_path, workers, KEYS, connection_limits=bounds) as haproxy,
        ExitStack() as held,
    ):
        haproxy.set_ready(3)
        where = table(haproxy)
        key = KEYS["tenant-0"][0]
        other = next(tenant for tenant in where if where[tenant] != where["tenant-0"])
        held.enter_context(streaming(haproxy, key))
        for count in (1, 2):
            waiting = held.enter_context(closing(haproxy.connect()))
            waiting.request("GET", "/", headers={"Authorization": f"Bearer {key}"})
            eventually(lambda count=count: queued(haproxy) == count, "the connection waits")
        assert refusal(haproxy.ask(key)) == (503, "1", "overloaded")
        assert haproxy.worker_of(KEYS[other][0]) == where[other]


def test_without_a_key_only_a_gateway_that_is_full_everywhere_turns_one_away(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    bounds = ConnectionLimits(max_total=100, max_per_server=1, max_queued=1)
    with (
        bench(haproxy_binary, tmp_path, workers[:1], KEYS, connection_limits=bounds) as haproxy,
        ExitStack() as held,
    ):
        haproxy.set_ready(1)
        held.enter_context(streaming(haproxy, UNKNOWN))
        waiting = held.enter_context(closing(haproxy.connect()))
        waiting.request("GET", "/", headers={"Authorization": f"Bearer {UNKNOWN}"})
        eventually(lambda: queued(haproxy) == 1, "the connection waits")
        assert refusal(haproxy.ask(UNKNOWN)) == (503, "1", "overloaded")


def test_one_address_opens_no_more_connections_in_a_second_than_it_may(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    bounds = ConnectionLimits(max_total=100, max_per_server=50, max_new_per_source=3)
    with bench(haproxy_binary, tmp_path, workers, KEYS, connection_limits=bounds) as haproxy:
        haproxy.set_ready(3)

        def refused(address: str) -> bool:
            source = (address, 0)
            with closing(
                http.client.HTTPConnection("127.0.0.1", haproxy.port, PATIENCE, source)
            ) as connection:
                try:
                    connection.request("GET", "/", headers={"Authorization": f"Bearer {KEYS['tenant-0'][0]}"})
                    return connection.getresponse().status != 200
                except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    return True

        # Many connections together, because a busy machine may take a second for a few.
        eventually(
            lambda: any(refused("127.0.0.5") for _ in range(20)), "a connection is closed without an answer"
        )
        assert not refused("127.0.0.6"), "another address has its own count"


def queued(haproxy: Bench) -> int:
    """Return the number of connections in the queues of all workers."""
    lines = haproxy.metrics("/metrics")[1].splitlines()
    waiting = re.compile(r'haproxy_(server|backend)_current_queue\{proxy="workers".*\} (\d+)')
    return sum(int(found[2]) for found in map(waiting.fullmatch, lines) if found)


# --- The access log


def test_every_connection_is_logged_with_its_tenant_and_worker_and_without_its_key(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS, log_all=True) as haproxy:
        haproxy.set_ready(3)
        owner = haproxy.worker_of(KEYS["tenant-0"][0])
        haproxy.ask(UNKNOWN)
        eventually(lambda: len(haproxy.log()) == 2, "both connections are logged")
        # Two connections that end at the same time may be logged in either order.
        known, unknown = sorted(haproxy.log(), key=lambda line: line["tenant"] == "-")
        assert (known["tenant"], known["worker"]) == ("tenant-0", f"worker-{owner}")
        assert (known["event"], known["backend"], known["termination"]) == ("connection", "workers", "--")
        assert known["bytes_received"] > 0 < known["bytes_sent"]
        assert 0 <= known["connect_ms"] <= known["total_ms"]
        assert unknown["tenant"] == "-"
        assert known["id"] != unknown["id"]
        text = (haproxy.folder / "haproxy.log").read_text()
        assert "sk-bench-" not in text and UNKNOWN not in text


def test_no_key_is_logged_in_whichever_field_it_comes(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS, log_all=True) as haproxy:
        haproxy.set_ready(3)
        fields = ("x-api-key", "api-key", "x-goog-api-key")
        for field in fields:
            assert haproxy.ask(None, f"{field}: {KEYS['tenant-0'][0]}")[2]["tenant"] == "tenant-0"
        eventually(lambda: len(haproxy.log()) == len(fields), "the connections are logged")
        assert {line["tenant"] for line in haproxy.log()} == {"tenant-0"}
        text = (haproxy.folder / "haproxy.log").read_text()
        assert "sk-bench-" not in text and "api-key" not in text


def test_by_default_only_what_went_wrong_is_logged(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS) as haproxy:
        haproxy.set_ready(3)
        haproxy.worker_of(KEYS["tenant-0"][0])
        with closing(socket.create_connection(("127.0.0.1", haproxy.port))):
            pass
        # All workers refuse: after a failed health check on a busy machine, another worker could answer.
        for worker in workers:
            worker.refuse_connections()
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            haproxy.ask(KEYS["tenant-1"][0])
        eventually(lambda: haproxy.log(), "the connection without a worker is logged")
        line = haproxy.log()[0]
        assert line["tenant"] == "tenant-1"
        assert line["worker"] in {f"worker-{number}" for number in range(len(workers))}
        assert line["termination"] == "SC", "terminated on the server's side during the connection attempt"


# --- Replicas


def test_two_haproxies_send_five_hundred_tenants_the_same_way_whatever_becomes_of_them(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    keys = {f"tenant-{number}": [f"sk-replica-{number}-0123456789"] for number in range(500)}
    placed = {"tenant-7": 1, "tenant-8": 2}

    def where(haproxy: Bench) -> dict[str, int]:
        return {tenant: haproxy.worker_of(found[0]) for tenant, found in keys.items()}

    with (
        bench(haproxy_binary, tmp_path, workers, keys, owners=placed) as one,
        bench(haproxy_binary, tmp_path, list(reversed(workers)), keys, owners=placed) as other,
    ):
        one.set_ready(3)
        eventually(lambda: other.up() == 3, "all workers up")
        before = where(one)
        assert where(other) == before
        assert before | placed == before
        other.process.send_signal(signal.SIGKILL)
        other.restart(haproxy_binary)
        eventually(lambda: other.up() == 3, "all workers up")
        assert where(other) == before
        one.set_ready(2)
        eventually(lambda: other.up() == 2, "one worker away")
        assert where(one) == where(other)
        one.set_ready(3)
        eventually(lambda: other.up() == 3, "all workers up")
        assert where(one) == where(other) == before
