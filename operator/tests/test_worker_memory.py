"""The workers' buffers for bodies and answers fit into their memory, also while its size changes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.plan.decide import ReconcilePlan
from tests.worker_files import load_worker_config
from tests.world import World

Manifest = dict[str, Any]
MIB = 1 << 20


def worker(ordinal: int, memory: str) -> Manifest:
    name = f"demo-worker-{ordinal}"
    sidecar = {"name": "shipper", "resources": {"limits": {"memory": "32Mi"}}}
    own = {"name": "worker", "resources": {"limits": {"memory": memory}}}
    return {
        "metadata": {"name": name, "uid": f"uid-{ordinal}-{memory}"},
        "spec": {"containers": [sidecar, own]},
        "status": {"podIP": f"10.0.0.{ordinal}"},
    }


def running(memory: str) -> World:
    world = World(worker={"memory": memory})
    world.pods = [worker(0, memory), worker(1, memory)]
    return world.settle()


def limits(world: World) -> tuple[int, int]:
    """Return the maximum body size, and the total buffer size in the workers' file."""
    text = world.settle().child("ConfigMap", "demo-config")["data"]["gateway.yaml"]
    said = yaml.safe_load(text)["limits"]
    return said["bodyBytes"], said["bufferedBytes"]


def config_valid(plan: ReconcilePlan) -> tuple[str, str, str]:
    found = plan.status.condition(ConditionType.CONFIG_VALID)
    return found.status.value, found.reason, found.message


def test_more_memory_is_used_when_the_last_worker_that_has_less_is_gone() -> None:
    world = running("640Mi")
    assert limits(world) == (32 * MIB, 210 * MIB)
    world.manifest["spec"]["worker"]["memory"] = "2Gi"
    assert limits(world) == (32 * MIB, 210 * MIB)
    world.pods[1] = worker(1, "2Gi")
    assert limits(world) == (32 * MIB, 210 * MIB)
    world.pods[0] = worker(0, "2Gi")
    assert limits(world) == (32 * MIB, 1618 * MIB)


def test_less_memory_holds_at_once_for_those_that_still_have_more() -> None:
    world = running("2Gi")
    world.manifest["spec"]["worker"]["memory"] = "512Mi"
    # A body may use a ninth of the memory for bodies, rounded to mebibytes.
    assert limits(world) == (26 * MIB, 112 * MIB)


def test_a_worker_from_before_there_was_a_least_keeps_what_a_worker_needs() -> None:
    world = World(worker={"memory": "512Mi"})
    world.pods = [worker(0, "256Mi")]
    assert limits(world) == (12 * MIB, 54 * MIB)


def test_longer_bodies_are_taken_where_the_memory_has_room_for_them() -> None:
    world = running("1Gi")
    assert limits(world) == (32 * MIB, (1024 - 270 - 5 * 32) * MIB)
    world.manifest["spec"]["limits"] = {"bodyBytes": 80 * MIB}
    assert limits(world) == (80 * MIB, (1024 - 270 - 5 * 80) * MIB)
    world.manifest["spec"]["limits"] = {"bodyBytes": 1 * MIB}
    assert limits(world) == (1 * MIB, (1024 - 270 - 5 * 1) * MIB)


def test_a_worker_that_is_too_small_for_longer_bodies_takes_what_it_can_until_it_is_replaced() -> None:
    world = running("640Mi")
    world.manifest["spec"] |= {"limits": {"bodyBytes": 100 * MIB}, "worker": {"memory": "2Gi"}}
    body, held = limits(world)
    assert body == (640 - 270) * MIB // 9 and 4 * body <= held
    world.pods = [worker(0, "2Gi"), worker(1, "2Gi")]
    assert limits(world) == (100 * MIB, (2048 - 270 - 500) * MIB)


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ({"connections": 8192}, 142 + 256),
        ({"connections": 1024}, 142 + 32),
        ({"headBytes": 64 << 10}, 142 + 320),
    ],
    ids=str,
)
def test_what_connections_take_is_not_for_bodies_and_answers(asked: dict[str, int], taken: int) -> None:
    world = running("1Gi")
    world.manifest["spec"]["limits"] = asked
    assert limits(world) == (32 * MIB, (1024 - taken - 5 * 32) * MIB)


@pytest.mark.parametrize(
    ("asked", "least", "otherwise"),
    [({"bodyBytes": 64 * MIB}, 846, 270), ({"connections": 16_384}, 744, 654)],
    ids=str,
)
def test_limits_that_the_memory_has_no_room_for_are_a_condition_that_says_how_much_they_take(
    asked: dict[str, int], least: int, otherwise: int
) -> None:
    world = running("640Mi")
    world.manifest["spec"]["limits"] = asked
    plan = world.plan()
    status, reason, message = config_valid(plan)
    assert (status, reason) == ("False", "SpecInvalid")
    assert f"spec.worker.memory must be at least {least}Mi with this spec.limits" in message
    assert f"a worker then needs {otherwise}Mi, and " in message
    assert "make bodyBytes, connections or headBytes smaller" in message
    # Only the workers' objects are held back; HAProxy's are applied.
    applied = {found["metadata"]["name"] for found in plan.manifests_to_apply}
    assert applied.isdisjoint({"demo-config", "demo-worker"})
    world.manifest["spec"]["worker"]["memory"] = f"{least}Mi"
    assert config_valid(world.plan())[0] == "True"


def test_too_little_memory_is_a_condition_and_leaves_the_workers_as_they_are() -> None:
    # The CRD refuses this value, but a gateway may have been stored before the CRD had that rule.
    world = running("512Mi")
    world.manifest["spec"]["worker"]["memory"] = "256Mi"
    plan = world.plan()
    status, reason, message = config_valid(plan)
    assert (status, reason) == ("False", "SpecInvalid")
    assert "spec.worker.memory must be at least 384Mi" in message
    assert {found["kind"] for found in plan.manifests_to_apply}.isdisjoint({"ConfigMap", "StatefulSet"})


def analysed(memory: str, **analysis: int) -> World:
    world = running(memory)
    world.manifest["spec"]["analysis"] = analysis
    return world


def test_what_analysis_takes_is_not_for_bodies_and_answers() -> None:
    sizes = {"maxCopyBytes": 32 * MIB, "maxAnswerBytes": 4 * MIB, "window": 2048, "maxPairs": 128}
    # The sum of copies, one answer being read, and the retained parts of answers.
    rest = 242 - 32 - (4 * 4 + 1) - 75
    assert limits(analysed("512Mi", **sizes)) == (13 * MIB, (rest - 5 * 13) * MIB)
    body, held = limits(analysed("512Mi"))
    assert body == 24 * MIB
    assert (242 - 26 - 5 * 24) * MIB < held < (242 - 25 - 5 * 24) * MIB


@pytest.mark.parametrize(
    ("memory", "analysis", "least"),
    [("512Mi", {"maxCopyBytes": 1 << 30}, 1394), ("384Mi", {}, 386), ("385Mi", {}, 386)],
    ids=str,
)
def test_more_analysis_than_the_memory_has_room_for_is_a_condition_that_says_how_much_it_takes(
    memory: str, analysis: dict[str, int], least: int
) -> None:
    world = analysed(memory, **analysis)
    plan = world.plan()
    status, reason, message = config_valid(plan)
    assert (status, reason) == ("False", "SpecInvalid")
    assert f"spec.worker.memory must be at least {least}Mi with this spec.analysis" in message
    assert {found["kind"] for found in plan.manifests_to_apply}.isdisjoint({"ConfigMap", "StatefulSet"})
    world.manifest["spec"]["worker"]["memory"] = f"{least}Mi"
    assert config_valid(world.plan())[0] == "True"


def test_a_worker_that_is_too_small_for_new_analysis_keeps_what_a_worker_needs_until_it_is_replaced() -> None:
    world = analysed("512Mi", maxCopyBytes=1 << 30)
    world.manifest["spec"]["worker"]["memory"] = "2Gi"
    assert limits(world) == (10 * MIB, 40 * MIB)
    world.pods = [worker(0, "2Gi"), worker(1, "2Gi")]
    assert limits(world)[1] > 400 * MIB


@pytest.mark.parametrize("memory", ["384Mi", "1.5Gi", "500M", "4Ti"])
def test_the_workers_accept_what_any_memory_makes(tmp_path: Path, memory: str) -> None:
    config = load_worker_config(tmp_path, worker={"memory": memory})
    assert config.settings.limits.buffered_bytes >= 4 * config.settings.limits.body_bytes
