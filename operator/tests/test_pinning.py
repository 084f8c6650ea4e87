"""The conditions `CPUPinned` and `ConfigValid` for given reports of workers."""

from dataclasses import replace
from typing import Any

import pytest

from proofgate_operator.api.conditions import ConditionStatus, ConditionType
from proofgate_operator.plan.pinning import cpu_pinned_condition
from proofgate_operator.plan.reports import WorkerReport
from proofgate_operator.plan.shards import Shard
from tests.moving_world import MovingWorld


def shard(ordinal: int, report: WorkerReport | None, ready: bool = True, **status: Any) -> Shard:
    conditions = [{"type": "Ready", "status": str(ready)}]
    pod = {
        "metadata": {"name": f"demo-worker-{ordinal}"},
        "status": {"podIP": "10.0.0.1", "conditions": conditions, **status},
    }
    return Shard(pod, report)


ALONE, SHARED = WorkerReport(cpus=1), WorkerReport(cpus=8)


@pytest.mark.parametrize(
    ("cpu", "shards", "status", "reason"),
    [
        ("1", [shard(0, ALONE), shard(1, ALONE)], "True", "Exclusive"),
        ("2", [shard(0, WorkerReport(cpus=2))], "True", "Exclusive"),
        ("1000m", [shard(0, ALONE)], "True", "Exclusive"),
        ("1", [shard(0, ALONE), shard(1, SHARED)], "False", "SharedCores"),
        ("1", [shard(0, ALONE), shard(1, SHARED, ready=False)], "True", "Exclusive"),
        ("500m", [shard(0, ALONE)], "False", "FractionalCPU"),
        ("1", [shard(0, ALONE), shard(1, None)], "Unknown", "NotMeasured"),
        ("1", [shard(0, ALONE), shard(1, WorkerReport(reachable=False))], "Unknown", "NotMeasured"),
        ("1", [], "Unknown", "NotMeasured"),
    ],
)
def test_a_core_is_a_workers_own_when_its_cpu_set_is_no_larger(
    cpu: str, shards: list[Shard], status: str, reason: str
) -> None:
    found = cpu_pinned_condition(cpu, shards)
    assert (found.status.value, found.reason) == (status, reason)


def test_shared_cores_are_explained() -> None:
    held = WorkerReport(cpus=8, throttled=True)
    message = cpu_pinned_condition("1", [shard(0, held), shard(1, SHARED)]).message
    assert message == (
        "demo-worker-0 requests 1 core and runs on any of 8 CPUs, and its CPU limit throttles it; the same "
        "applies to 1 other worker: a worker has exclusive cores only if the kubelet's CPU manager policy is static"
    )


def test_a_refusal_of_the_kubelet_is_explained() -> None:
    failed = shard(0, None, ready=False, phase="Failed", reason="SMTAlignmentError", message="...")
    found = cpu_pinned_condition("1", [failed])
    assert found.reason == "SMTAlignmentError" and "set spec.worker.cpu to a multiple" in found.message


def test_a_configuration_that_a_worker_refused_is_told_with_its_reason() -> None:
    world = MovingWorld(2)
    seen = world.observed()
    refused = replace(seen.worker_reports[1], refusal_reason="config_invalid; tenants[0].name: is taken")
    status = world.plan_of(replace(seen, worker_reports={**seen.worker_reports, 1: refused})).status
    valid = status.condition(ConditionType.CONFIG_VALID)
    assert (valid.status, valid.reason) == (ConditionStatus.FALSE, "RefusedByWorker")
    assert valid.message == (
        "demo-worker-1 keeps the previous configuration: config_invalid; tenants[0].name: is taken"
    )
    assert not status.condition(ConditionType.READY).is_true


def test_what_a_worker_cannot_take_on_before_it_is_replaced_is_no_refusal() -> None:
    world = MovingWorld(2)
    world.use_image("worker:next")
    world.reconcile()
    world.tick()
    seen = world.observed()
    refused = replace(seen.worker_reports[1], refusal_reason="config_needs_restart", needs_restart=True)
    status = world.plan_of(replace(seen, worker_reports={**seen.worker_reports, 1: refused})).status
    assert status.condition(ConditionType.CONFIG_VALID).is_true


def test_the_digest_that_a_worker_has_in_force_is_told_and_kept_while_it_cannot_be_asked() -> None:
    world = MovingWorld(1)
    seen = world.observed()
    told = world.plan_of(
        replace(seen, worker_reports={0: WorkerReport(config_digest="ab" * 32)})
    ).status.shards
    assert told[0]["configDigest"] == "ab" * 32
    kept = world.plan_of(
        replace(seen, previous_shards=told, worker_reports={0: WorkerReport(reachable=False)})
    ).status.shards
    assert kept == told
