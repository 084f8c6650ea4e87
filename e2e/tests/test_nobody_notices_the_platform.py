"""Operations of a platform team around the workers: under a steady load no request fails, no stream breaks, and nothing
is lost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e import operations
from e2e.kubernetes import PATIENCE, wait_until
from e2e.lab_network import open_stream
from e2e.load import SteadyLoad, steady_load
from e2e.operations import Gateway
from e2e.tests.fleet import MODEL
from e2e.tests.traffic import LOADED, Runner, nobody_noticed, owners, url


def test_load_balancers_are_replaced_unnoticed(ops: Gateway, under_load: Runner) -> None:
    def restart(_: SteadyLoad) -> None:
        ops.namespace.kubectl("rollout", "restart", f"deployment/{ops.name}-haproxy")
        ops.namespace.wait_ready("deployment", f"{ops.name}-haproxy")

    nobody_noticed(under_load(restart))


def test_a_pooled_client_that_is_seldom_used_loses_nothing_when_load_balancers_go_for_good(
    ops: Gateway, tmp_path: Path
) -> None:
    """HAProxy closes a connection that is idle for seconds at a time, before its hard stop would cut it."""
    # Long compared to a request on a busy machine. A pod ends earlier, with its last connection.
    balancer = {"replicas": 2, "terminationGracePeriodSeconds": 300}
    ops.patch({"loadBalancer": balancer, "timeouts": {"connectionAgeSeconds": 8}})
    ops.wait_settled(2)
    old = ops.uids("load-balancer").values()
    with steady_load(ops.namespace, ops.name, tmp_path, LOADED, streams=False, pause=2) as load:
        ops.namespace.kubectl("rollout", "restart", f"deployment/{ops.name}-haproxy")
        ops.namespace.wait_ready("deployment", f"{ops.name}-haproxy")
        wait_until(
            lambda: not set(old) & uids_even_of_those_that_go(ops), PATIENCE, "the former load balancers are gone"
        )
    nobody_noticed(load.report)
    assert max(Counter(one.key for one in load.report.whole).values()) > 3, "connections were used more than once"


def uids_even_of_those_that_go(ops: Gateway) -> set[str]:
    """The uids of HAProxy's pods, including those that are being deleted."""
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


def test_connections_inside_come_to_tls_and_back_unnoticed(ops: Gateway, under_load: Runner) -> None:
    # A retired load balancer runs as long as its oldest connection, and workers accept clear text until it ends.
    ops.patch({"timeouts": {"connectionAgeSeconds": 8}})
    ops.wait_settled(2)

    def change_over(load: SteadyLoad) -> None:
        ops.encrypt_inside(True)
        load.goes_on(100)
        ops.encrypt_inside(False)

    nobody_noticed(under_load(change_over))


def test_another_operator_replaces_no_worker(ops: Gateway, under_load: Runner) -> None:
    before = ops.uids("worker") | ops.uids("load-balancer")
    nobody_noticed(under_load(lambda _: operations.restart_operator()))
    assert ops.uids("worker") | ops.uids("load-balancer") == before


def test_an_operator_killed_while_it_scales_down_is_not_noticed(ops: Gateway, under_load: Runner) -> None:
    def kill_while_scaling(load: SteadyLoad) -> None:
        ops.scale(3)
        with busy(ops, 2):
            ops.namespace.kubectl("scale", f"ggw/{ops.name}", "--replicas=2")
            wait_until(lambda: "Retiring" in phases(ops), PATIENCE, "a worker retires")
            operations.kill_operator()
        ops.wait_settled(2)
        load.goes_on(50)

    nobody_noticed(under_load(kill_while_scaling))


@contextmanager
def busy(ops: Gateway, worker: int) -> Iterator[None]:
    """Keeps a worker busy with a long stream; otherwise a retiring worker would end after three seconds."""
    name = f"{ops.name}-worker-{worker}"
    served = wait_until(
        lambda: [
            key for key, owner in owners(ops.namespace, ops.name, {key: key for key in LOADED}).items() if owner == name
        ],
        PATIENCE,
        f"{name} has tenants",
    )
    stream = {
        "model": MODEL,
        "stream": True,
        "messages": [{"role": "user", "content": "mock:tokens=9000 mock:interval=100"}],
    }
    chat = f"{url(ops.namespace, ops.name)}/chat/completions"
    with open_stream(chat, json.dumps(stream), {"Authorization": f"Bearer {served[0]}"}):
        yield


def phases(ops: Gateway) -> list[str]:
    """The phase of every worker in the gateway's status."""
    found = ops.namespace.get("ggw", ops.name) or {}
    return [shard["phase"] for shard in found.get("status", {}).get("shards", [])]
