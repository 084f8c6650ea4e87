"""Changes that somebody wanted: under a steady load no request fails and no stream breaks, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e import operations
from e2e.kubernetes import Namespace, wait_until
from e2e.load import Report, SteadyLoad, steady_load
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask, records, wait_reachable

#: Small workers, so that four of them fit beside everything else.
WORKER = {"cpu": "300m", "memory": "512Mi"}
KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


@pytest.fixture(scope="module")
def ops(namespace: Namespace, gateway: str) -> Iterator[Gateway]:
    """A gateway of its own, with two small workers and two load balancers."""
    # Room on either node for everything of this one, when the other node is drained.
    Gateway(namespace, gateway).scale(1)
    manifest = fleet.gateway("ops", 2, TENANTS[:12], worker=WORKER, loadBalancer={"replicas": 2})
    namespace.apply(manifest)
    found = Gateway(namespace, "ops")
    found.wait_settled(2)
    wait_reachable(namespace, "ops")
    yield found
    namespace.kubectl("delete", "ggw", "ops", "--timeout=120s")
    Gateway(namespace, gateway).scale(2)


@pytest.fixture
def under_load(ops: Gateway, tmp_path: Path) -> Iterator[Callable[[Callable[[SteadyLoad], None]], Report]]:
    """Runs something under a steady load; afterwards the gateway has its two workers again."""

    def run(action: Callable[[SteadyLoad], None]) -> Report:
        with steady_load(ops.namespace, ops.name, tmp_path, KEYS) as load:
            action(load)
        return load.report

    yield run
    ops.namespace.apply(fleet.gateway("ops", 2, TENANTS[:12], worker=WORKER, loadBalancer={"replicas": 2}))
    ops.wait_settled(2)


Runner = Callable[[Callable[[SteadyLoad], None]], Report]


def nobody_noticed(report: Report) -> None:
    """Every request was answered whole and once, and is in the ledger."""
    assert report.whole
    assert not report.failed, report.failed[:3]
    assert not report.broken, report.broken[:3]
    assert not report.lost, report.lost[:3]
    assert not report.repeated, report.repeated[:3]
    assert {one.id for one in report.whole} == set(report.seen)


def test_scaling_from_two_to_four_and_back_is_not_noticed(ops: Gateway, under_load: Runner) -> None:
    def scale(load: SteadyLoad) -> None:
        ops.scale(4)
        load.goes_on(100)
        ops.scale(2)
        load.goes_on(100)

    nobody_noticed(under_load(scale))
    every_incarnation_that_ended_is_sealed(ops)


def every_incarnation_that_ended_is_sealed(ops: Gateway) -> None:
    """All logs but those of the workers that run end with a seal."""
    kinds: dict[str, list[str]] = {}
    for record in records(ops.namespace, ops.name):
        kinds.setdefault(record["log"], []).append(record["kind"])
    sealed = [log for log, found in kinds.items() if found[-1] == "seal"]
    assert len(kinds) - len(sealed) == len(ops.pods("worker")), {log: found[-1] for log, found in kinds.items()}


def test_a_new_image_rolls_worker_by_worker_unnoticed(ops: Gateway, under_load: Runner) -> None:
    image = operations.second_worker_image()

    def upgrade(_: SteadyLoad) -> None:
        ops.roll("worker", lambda: ops.patch({"worker": {"image": image}}))

    nobody_noticed(under_load(upgrade))
    every_incarnation_that_ended_is_sealed(ops)


def test_a_configuration_that_needs_new_workers_rolls_unnoticed(ops: Gateway, under_load: Runner) -> None:
    nobody_noticed(under_load(lambda _: ops.roll("worker", lambda: ops.patch({"ledger": {"durability": "Synced"}}))))


def test_with_required_affinity_workers_are_replaced_unnoticed(ops: Gateway, under_load: Runner) -> None:
    balancer = {"replicas": 2, "affinity": "Required"}
    ops.namespace.apply(fleet.gateway("ops", 2, TENANTS[:12], worker=WORKER, loadBalancer=balancer))
    ops.wait_settled(2)
    change = {"ledger": {"checkpointIntervalSeconds": 2}}
    nobody_noticed(under_load(lambda _: ops.roll("worker", lambda: ops.patch(change))))
    every_incarnation_that_ended_is_sealed(ops)


def test_a_configuration_that_can_be_taken_on_replaces_nobody(ops: Gateway, under_load: Runner) -> None:
    pods = ops.uids("worker") | ops.uids("load-balancer")
    rule = {"id": "codename", "reason": "It names a project.", "literals": ["bluebird"], "action": "Block"}

    def change(_: SteadyLoad) -> None:
        ops.patch({"policy": {"rules": [rule]}})
        refused = lambda: ask(ops.namespace, ops.name, KEYS[0], "tell me of bluebird") == 403  # noqa: E731
        wait_until(refused, 60, "the rule holds")

    nobody_noticed(under_load(change))
    assert ops.uids("worker") | ops.uids("load-balancer") == pods


def test_a_key_is_rotated_without_replacing_a_pod(ops: Gateway, under_load: Runner) -> None:
    pods = ops.uids("worker") | ops.uids("load-balancer")
    new = "sk-e2e-fresh-0123456789abcdef"
    secret = f"{TENANTS[5]}-keys"

    def rotate(_: SteadyLoad) -> None:
        operations.rotate_key(ops, secret, "second", new)
        wait_until(lambda: ask(ops.namespace, ops.name, new) == 200, 60, "the new key is let in")
        operations.rotate_key(ops, secret, "second", key_of(TENANTS[5], 1))
        wait_until(lambda: ask(ops.namespace, ops.name, new) == 401, 60, "the new key is refused again")

    nobody_noticed(under_load(rotate))
    assert ops.uids("worker") | ops.uids("load-balancer") == pods


def test_load_balancers_are_replaced_unnoticed(ops: Gateway, under_load: Runner) -> None:
    def restart(_: SteadyLoad) -> None:
        ops.namespace.kubectl("rollout", "restart", "deployment/ops-haproxy")
        ops.namespace.kubectl("rollout", "status", "deployment/ops-haproxy", "--timeout", "180s")

    nobody_noticed(under_load(restart))


def test_a_pooled_client_that_is_seldom_used_loses_nothing_when_load_balancers_go_for_good(
    ops: Gateway, tmp_path: Path
) -> None:
    """Of a connection that is idle for seconds at a time, HAProxy gets rid before its hard stop cuts it."""
    balancer = {"replicas": 2, "terminationGracePeriodSeconds": 60}
    timeouts = {"upstreamConnectSeconds": 2, "upstreamResponseSeconds": 3, "connectionAgeSeconds": 20}
    ops.namespace.apply(fleet.gateway("ops", 2, TENANTS[:12], worker=WORKER, loadBalancer=balancer, timeouts=timeouts))
    ops.wait_settled(2)
    old = ops.uids("load-balancer").values()
    with steady_load(ops.namespace, ops.name, tmp_path, KEYS, streams=False, pause=5) as load:
        ops.namespace.kubectl("rollout", "restart", "deployment/ops-haproxy")
        ops.namespace.kubectl("rollout", "status", "deployment/ops-haproxy", "--timeout", "180s")
        wait_until(lambda: not set(old) & uids_even_of_those_that_go(ops), 180, "the former load balancers are gone")
    nobody_noticed(load.report)
    assert max(Counter(one.key for one in load.report.whole).values()) > 3, "connections were used more than once"


def uids_even_of_those_that_go(ops: Gateway) -> set[str]:
    """The uids of HAProxy's pods, those that are on their way out included."""
    selector = f"app.kubernetes.io/component=load-balancer,proofgate.dev/gateway={ops.name}"
    return {pod["metadata"]["uid"] for pod in ops.namespace.list("pods", selector)}


def test_a_node_is_drained_unnoticed(ops: Gateway, under_load: Runner) -> None:
    node = operations.node_of(ops.pods("worker")[0])

    def drain(_: SteadyLoad) -> None:
        try:
            operations.drain(node, ops)
        finally:
            operations.uncordon(node)
        ops.wait_settled(2)

    nobody_noticed(under_load(drain))


def test_another_operator_replaces_no_worker(ops: Gateway, under_load: Runner) -> None:
    before = ops.uids("worker") | ops.uids("load-balancer")
    nobody_noticed(under_load(lambda _: operations.restart_operator()))
    assert ops.uids("worker") | ops.uids("load-balancer") == before


def test_an_operator_killed_while_it_scales_down_is_not_noticed(ops: Gateway, under_load: Runner) -> None:
    def kill_while_scaling(load: SteadyLoad) -> None:
        ops.scale(3)
        ops.namespace.kubectl("scale", "ggw/ops", "--replicas=2")
        wait_until(lambda: "Retiring" in phases(ops), 60, "a worker retires", every=0.1)
        operations.kill_operator()
        ops.wait_settled(2)
        load.goes_on(50)

    nobody_noticed(under_load(kill_while_scaling))


def test_a_scale_down_that_is_taken_back_keeps_its_worker(ops: Gateway, under_load: Runner) -> None:
    def change_ones_mind(load: SteadyLoad) -> None:
        ops.scale(3)
        before = ops.uids("worker")
        ops.namespace.kubectl("scale", "ggw/ops", "--replicas=2")
        wait_until(lambda: "Retiring" in phases(ops), 60, "a worker retires", every=0.1)
        ops.namespace.kubectl("scale", "ggw/ops", "--replicas=3")
        ops.wait_settled(3)
        assert ops.uids("worker") == before
        load.goes_on(50)

    nobody_noticed(under_load(change_ones_mind))


def phases(ops: Gateway) -> list[str]:
    """The phase of every worker, as the gateway's status has it."""
    found = ops.namespace.get("ggw", ops.name) or {}
    return [shard["phase"] for shard in found.get("status", {}).get("shards", [])]
