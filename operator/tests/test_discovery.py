"""Every HAProxy finds a new worker before another worker leaves, however long that takes."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import LOAD_BALANCED_CONDITION
from proofgate_operator.handlers.worker_lifecycle import mark_load_balanced
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.balancers import (
    DISCOVERY_DEADLINE_SECONDS,
    UNRESPONSIVE_SECONDS,
    BalancerReport,
    Balancers,
    BalancerView,
    ServerState,
    awaits_discovery,
    is_discovered,
    load_balanced_condition,
    parse_balancer_report,
)
from proofgate_operator.plan.decide import decide
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.shards import read_shards, should_query_balancers
from proofgate_operator.workers.admin_port import AdminPort
from proofgate_operator.workers.balancers import BalancerReports
from tests.fake_cluster import FakeCluster
from tests.finding_world import FindingWorld
from tests.gateways import DEFAULTS
from tests.moving_world import MovingWorld
from tests.test_convergence import new_cluster, settle

Manifest = dict[str, Any]
NOW = 1_900_000_000.0


def progressing(world: FindingWorld) -> tuple[str, str, str]:
    found = world.plan().status.condition(ConditionType.PROGRESSING)
    return found.status.value, found.reason, found.message


# --- Rolls, surges, scale-downs


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("finds_after", [0, 7, 40])
def test_the_next_worker_retires_only_once_every_haproxy_has_found_the_one_before(
    replicas: int, finds_after: float
) -> None:
    # The world asserts this at every step.
    world = FindingWorld(replicas)
    world.finders["demo-haproxy-b"].finds_after = finds_after
    world.use_image("worker:next")
    for _ in range(400):
        world.run(1)
        if world.settled(world.plan()):
            break
    assert {pod.revision for pod in world.pods.values()} == {"worker:next"}


def test_a_worker_is_ready_to_whoever_drains_nodes_only_once_every_haproxy_has_found_it() -> None:
    world = FindingWorld(2)
    world.finders["demo-haproxy-b"].finds_after = 30
    world.pods[0].ending = True
    world.tick(2)
    serves = None
    for _ in range(60):
        world.run(1)
        pod = world.pods[0]
        serves = pod.serves_since or serves
        if pod.ready(world.now):
            break
    assert serves is not None and world.now - serves >= 30


def test_a_roll_that_waits_too_long_says_for_what_and_goes_on_by_itself() -> None:
    world = FindingWorld(3)
    finder = world.finders["demo-haproxy-b"]
    finder.finds_after = 10**6
    # HAProxy keeps workers that are up, and does not find new ones.
    for pod in world.pods.values():
        assert pod.serves_since is not None
        pod.serves_since -= 2 * 10**6
    world.use_image("worker:next")
    world.run(DISCOVERY_DEADLINE_SECONDS // 2)
    assert progressing(world)[:2] == ("True", "Rolling")
    world.run(DISCOVERY_DEADLINE_SECONDS)
    status, reason, message = progressing(world)
    assert (status, reason) == ("False", "RolloutStalled")
    address = world.pods[2].address
    assert message.startswith(f"demo-haproxy-b reports demo-worker-2 as down at {address}")
    assert world.removed == ["2:worker:test"]
    assert world.plan().status.condition(ConditionType.READY).is_true is False
    world.run(600)
    assert world.removed == ["2:worker:test"], "no other worker leaves, however long this lasts"
    assert progressing(world) == (status, reason, message)
    finder.finds_after = 0
    world.run(200)
    assert {pod.revision for pod in world.pods.values()} == {"worker:next"}


def test_a_scale_down_waits_for_those_that_stay() -> None:
    world = FindingWorld(3)
    world.finders["demo-haproxy-a"].finds_after = None
    world.scale(2)
    world.run(5)
    found = world.plan().status.condition(ConditionType.SCALING_SAFE)
    assert found.reason == "ScaleDownBlocked"
    assert "demo-haproxy-a reports demo-worker-0 as down" in found.message
    assert world.removed == []
    world.finders["demo-haproxy-a"].finds_after = 0
    world.settle()
    assert len(world.pods) == 2


def test_a_worker_that_retires_stays_while_a_haproxy_still_sends_it_connections() -> None:
    # The world asserts this at every step.
    world = FindingWorld(2)
    world.finders["demo-haproxy-a"].loses_after = 7
    world.use_image("worker:next")
    world.run(120)
    assert {pod.revision for pod in world.pods.values()} == {"worker:next"}


# --- A HAProxy that does not answer


def test_a_haproxy_that_is_not_ready_is_not_waited_for() -> None:
    world = FindingWorld(2)
    world.finders["demo-haproxy-a"].ready = False
    world.finders["demo-haproxy-a"].finds_after = None
    world.note_balancers()
    world.use_image("worker:next")
    world.run(120)
    assert {pod.revision for pod in world.pods.values()} == {"worker:next"}


def test_a_haproxy_that_does_not_answer_is_waited_for_and_not_for_ever() -> None:
    world = FindingWorld(2)
    world.finders["demo-haproxy-a"].silent_since = world.now
    world.use_image("worker:next")
    world.run(UNRESPONSIVE_SECONDS - 2)
    assert world.removed == []
    assert progressing(world)[:2] == ("True", "Rolling")
    world.run(120)
    assert {pod.revision for pod in world.pods.values()} == {"worker:next"}


def test_where_no_haproxy_answers_nobody_is_taken_away_and_the_condition_says_so() -> None:
    world = FindingWorld(2)
    for finder in world.finders.values():
        finder.silent_since = world.now
    world.use_image("worker:next")
    world.run(4 * UNRESPONSIVE_SECONDS)
    status, reason, message = progressing(world)
    assert (status, reason) == ("False", "RolloutStalled")
    assert "no HAProxy pod that is Ready answers the operator on port 8405" in message
    assert world.removed == []
    for finder in world.finders.values():
        finder.silent_since = None
    world.run(120)
    assert {pod.revision for pod in world.pods.values()} == {"worker:next"}


def test_where_no_haproxy_answers_a_worker_is_ready_after_a_while_so_that_nodes_can_be_drained() -> None:
    world = FindingWorld(2)
    for finder in world.finders.values():
        finder.silent_since = world.now - 2 * UNRESPONSIVE_SECONDS
    world.pods[0].ending = True
    world.run(DISCOVERY_DEADLINE_SECONDS // 2)
    assert not world.pods[0].ready(world.now)
    world.run(DISCOVERY_DEADLINE_SECONDS)
    assert world.pods[0].ready(world.now)


def test_while_nobody_moves_no_haproxy_is_asked() -> None:
    world = MovingWorld(2)
    seen = world.observed()
    shards = read_shards(seen, world.world.child("StatefulSet", "demo-worker"))
    assert not should_query_balancers(seen, shards, 2, 2)
    assert should_query_balancers(seen, shards, 2, 3)
    assert should_query_balancers(seen, shards[:1], 2, 2)
    assert should_query_balancers(replace(seen, previous_conditions=()), shards, 2, 2)
    world.pods[0].found_since = None
    seen = world.observed()
    shards = read_shards(seen, world.world.child("StatefulSet", "demo-worker"))
    assert should_query_balancers(seen, shards, 2, 2)


# --- Reports of one HAProxy on one worker


def pod(address: str = "10.0.0.1", served: float | None = 100.0, *, found: bool = False) -> Manifest:
    passed = {"type": "ContainersReady", "status": "False" if served is None else "True"}
    if served is not None:
        passed["lastTransitionTime"] = time_of(NOW - served)
    gate = {"type": LOAD_BALANCED_CONDITION, "status": str(found)}
    return {
        "metadata": {"name": "demo-worker-0", "namespace": "team", "uid": "uid-0"},
        "spec": {"readinessGates": [{"conditionType": LOAD_BALANCED_CONDITION}]},
        "status": {"podIP": address, "conditions": [passed, gate]},
    }


def sight(*reports: BalancerReport, of: Manifest | None = None, served: float = 100.0) -> BalancerView:
    named = {f"haproxy-{number}": report for number, report in enumerate(reports)}
    return Balancers(tuple(named), named).view_of(of or pod(), served)


def says(address: str | None, state: str, seconds: int = 3) -> BalancerReport:
    return BalancerReport({"worker-0": ServerState(address, state, seconds)})


UP = says("10.0.0.1", "up")
SILENT = BalancerReport(None, UNRESPONSIVE_SECONDS)


@pytest.mark.parametrize(
    ("reports", "missing", "late"),
    [
        ((), None, False),
        ((UP,), None, False),
        ((UP, UP), None, False),
        ((UP, SILENT), None, False),
        ((SILENT, SILENT), None, False),
        ((UP, says("10.0.0.1", "down")), "haproxy-1 reports demo-worker-0 as down at 10.0.0.1", False),
        ((UP, says("10.0.0.1", "down", 60)), "haproxy-1 reports demo-worker-0 as down at 10.0.0.1", True),
        ((says("10.0.0.9", "up"), UP), "haproxy-0 does not have the address of demo-worker-0 yet", False),
        ((says("10.0.0.9", "up", 60), UP), "haproxy-0 does not have the address of demo-worker-0 yet", True),
        ((says(None, "maintenance", 60),), "haproxy-0 does not have the address of demo-worker-0 yet", True),
        ((BalancerReport({}), UP), "haproxy-0 does not list demo-worker-0", True),
        (
            (UP, BalancerReport(None, 59.0)),
            "haproxy-1 does not answer, so it is unknown whether haproxy-1 sends connections to "
            "demo-worker-0",
            False,
        ),
    ],
)
def test_what_is_missing_is_told(
    reports: tuple[BalancerReport, ...], missing: str | None, late: bool
) -> None:
    found = sight(*reports)
    assert (found.missing_reason, found.is_overdue) == (missing, late)


def test_a_worker_that_has_not_served_for_long_is_not_late() -> None:
    assert not sight(says("10.0.0.9", "up", 600), served=59.0).is_overdue
    assert not sight(says("10.0.0.9", "up", 600), of=pod(served=None), served=0.0).is_overdue


def test_addresses_are_compared_as_numbers() -> None:
    told = parse_balancer_report(
        {"workers": [{"name": "worker-0", "address": "2001:DB8::0:1", "state": "up", "seconds": 1}]}
    )
    assert sight(told, of=pod("2001:db8:0::1")).missing_reason is None


def test_a_haproxy_that_was_not_asked_counts_as_one_that_says_nothing() -> None:
    found = Balancers(("haproxy-0",), {}).view_of(pod(), 100.0)
    assert found.missing_reason and not found.is_unresponsive and not is_discovered(found, 100.0)


@pytest.mark.parametrize(
    ("changed", "waits"),
    [
        (pod(), True),
        (pod(served=None), False),
        (pod(found=True), False),
        ({**pod(), "spec": {}}, False),
        ({**pod(), "metadata": {"name": "demo-worker-0", "deletionTimestamp": time_of(NOW)}}, False),
    ],
    ids=["it serves", "it does not", "it is found", "of an older operator", "it ends"],
)
def test_only_a_pod_that_serves_waits_to_be_found(changed: Manifest, waits: bool) -> None:
    assert awaits_discovery(changed) == waits


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"workers": {}},
        {"workers": ["worker-0"]},
        {"workers": [{"name": "worker-0", "address": None, "state": "upside", "seconds": 1}]},
        {"workers": [{"name": "worker-0", "address": "nowhere", "state": "up", "seconds": 1}]},
        {"workers": [{"name": "worker-0", "address": "10.0.0.1", "state": "up", "seconds": "1"}]},
    ],
)
def test_nonsense_is_no_report(answer: Any) -> None:
    with pytest.raises(ValueError):
        parse_balancer_report(answer)


# --- Addresses


def written(world: MovingWorld) -> str:
    return str(world.world.child("ConfigMap", "demo-addresses")["data"]["workers.map"])


def test_haproxy_is_told_of_pods_that_are_there_and_do_not_end() -> None:
    world = MovingWorld(3)
    first, second, third = (world.pods[number].address for number in range(3))
    assert written(world) == f"worker-0 {first}\nworker-1 {second}\nworker-2 {third}\n"
    world.pods[1].ending = True
    world.reconcile()
    assert written(world) == f"worker-0 {first}\nworker-1 -\nworker-2 {third}\n"
    world.settle()
    assert written(world) == f"worker-0 {first}\nworker-1 {world.pods[1].address}\nworker-2 {third}\n"
    assert world.pods[1].address != second
    world.scale(2)
    world.settle()
    assert written(world) == f"worker-0 {first}\nworker-1 {world.pods[1].address}\n"


def test_the_address_of_a_pod_that_has_failed_is_not_its_own_any_more() -> None:
    world = MovingWorld(2)
    seen = world.observed()
    failed = {**seen.worker_pods[0], "status": {**seen.worker_pods[0]["status"], "phase": "Failed"}}
    plan = world.plan_of(replace(seen, worker_pods=(failed, *seen.worker_pods[1:])))
    [changed] = [found for found in plan.manifests_to_apply if found["metadata"]["name"] == "demo-addresses"]
    assert changed["data"]["workers.map"].startswith("worker-0 -\n")


def test_haproxys_pods_are_marked_once_the_addresses_are_written() -> None:
    world = FindingWorld(2)
    marks = {found["metadata"]["annotations"]["proofgate.dev/addresses"] for found in world.world.balancers}
    assert len(marks) == 1
    world.pods[1].ending = True
    before = world.plan()
    assert [found["metadata"]["name"] for found in before.manifests_to_apply] == ["demo-addresses"]
    assert not before.pod_annotations
    world.carry_out(before)
    after = world.plan()
    assert sorted(after.pod_annotations) == ["demo-haproxy-a", "demo-haproxy-b"]
    assert {name for marks in after.pod_annotations.values() for name in marks} == {"proofgate.dev/addresses"}


def test_a_paused_gateway_still_tells_haproxy_where_workers_are() -> None:
    world = FindingWorld(2)
    world.world.manifest["spec"]["paused"] = True
    world.pods[1].ending = True
    plan = world.plan()
    assert [found["metadata"]["name"] for found in plan.manifests_to_apply] == ["demo-addresses"]
    assert not (
        plan.pods_to_retire or plan.pods_to_replace or plan.objects_to_delete or plan.secrets_to_generate
    )
    world.run(20)
    assert written(world).endswith(f"worker-1 {world.pods[1].address}\n")
    assert world.pods[1].ready(world.now)


# --- Requests and reports


@pytest.fixture
def told() -> Iterator[list[Any]]:
    yield [
        {
            "workers": [{"name": "worker-0", "address": "10.0.0.1", "state": "up", "seconds": 4}],
            "owners": "ab",
        }
    ]


async def test_the_agents_are_asked_and_their_silence_is_counted(told: list[Any]) -> None:
    async def workers(_: web.Request) -> web.Response:
        return web.json_response(told[0]) if told[0] else web.Response(status=503)

    app = web.Application()
    app.router.add_get("/workers", workers)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = AdminPort(1, 1, runner.addresses[0][1])
    now = [100.0]
    found = BalancerReports(port, lambda: now[0])

    def haproxy(name: str, ready: str = "True") -> Manifest:
        status = {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": ready}]}
        return {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": status}

    pods = [haproxy("a"), haproxy("b", "False")]
    try:
        assert await found.reports("team", "demo", pods) == {
            "a": BalancerReport({"worker-0": ServerState("10.0.0.1", "up", 4)}, owner_map_digest="ab")
        }
        told[0] = None
        assert (await found.reports("team", "demo", pods))["a"] == BalancerReport(None, 0.0)
        now[0] += 61
        assert (await found.reports("team", "demo", pods))["a"].has_timed_out
        told[0] = {"workers": []}
        assert (await found.reports("team", "demo", pods))["a"] == BalancerReport({})
        told[0] = {"workers": "many"}
        now[0] += 61
        assert (await found.reports("team", "demo", pods))["a"] == BalancerReport(None, 0.0)
    finally:
        await port.close()
        await runner.cleanup()


@pytest.fixture
def cluster() -> FakeCluster:
    found = new_cluster()
    settle(found)
    return found


def say(cluster: FakeCluster) -> list[str]:
    live = cluster.find("GovernanceGateway", "demo")
    gateway = Gateway.from_manifest(live)
    plan = replace(
        decide(gateway, MovingWorld(2).observed(), DEFAULTS),
        discovered_pods=(cluster.find("Pod", "demo-worker-0"),),
    )
    return asyncio.run(mark_load_balanced(cluster, plan, NOW, lambda *_: None))


def test_a_worker_that_was_found_gets_its_condition_and_keeps_the_others(cluster: FakeCluster) -> None:
    assert say(cluster) == []
    conditions = cluster.find("Pod", "demo-worker-0")["status"]["conditions"]
    assert {found["type"]: found["status"] for found in conditions} == {
        "Ready": "True",
        LOAD_BALANCED_CONDITION: "True",
    }


def test_a_refusal_to_set_it_is_told_and_a_pod_that_is_gone_is_none(cluster: FakeCluster) -> None:
    cluster.refuse["Pod"] = ApiError(403, "Forbidden", "cannot patch pods/status")
    assert say(cluster) == ["Pod demo-worker-0: Forbidden: cannot patch pods/status"]
    for status in (404, 409):
        cluster.refuse["Pod"] = ApiError(status, "NotFound", "gone")
        assert say(cluster) == []


def test_the_condition_is_for_one_pod_and_no_other_of_its_name() -> None:
    manifest = load_balanced_condition(pod(), time_of(NOW))
    assert manifest["metadata"] == {"name": "demo-worker-0", "namespace": "team", "uid": "uid-0"}
    assert [found["type"] for found in manifest["status"]["conditions"]] == [LOAD_BALANCED_CONDITION]
