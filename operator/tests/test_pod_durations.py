"""Durations of pods' states by the operator's own monotonic clock, independent of other clocks."""

from typing import Any

import pytest

from proofgate_operator.plan.balancers import served_seconds
from proofgate_operator.plan.pod_durations import PodFirstSeenTimes
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.shards import STUCK_SECONDS, Shard
from tests.moving_world import MovingWorld, Pod

BEGIN = 1_900_000_000.0
#: Differences between the clock of the API server and the nodes and the operator's clock.
SKEWS = [sign * seconds for seconds in (1, 7200, 86_400, 40 * 86_400, 3652 * 86_400) for sign in (1, -1)]


def pod(ready_since: float | None, uid: str = "uid-0", made: float = BEGIN) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "False" if ready_since is None else "True"}
    if ready_since is not None:
        condition["lastTransitionTime"] = time_of(ready_since)
    metadata = {"name": "demo-worker-0", "uid": uid, "creationTimestamp": time_of(made)}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


def shard(sights: PodFirstSeenTimes, seen: dict[str, Any], now: float) -> Shard:
    return Shard(seen, pod_durations=sights.observe([seen], now))


@pytest.mark.parametrize("skew", SKEWS)
def test_a_pod_is_ready_for_as_long_as_it_was_seen_whatever_its_node_calls_that_time(skew: float) -> None:
    sights, seen = PodFirstSeenTimes(), pod(BEGIN + skew)
    assert not shard(sights, seen, 100.0).ready_for(2)
    assert not shard(sights, seen, 101.5).ready_for(2)
    assert shard(sights, seen, 102.0).ready_for(2)


@pytest.mark.parametrize("skew", SKEWS)
def test_a_pod_is_stuck_once_it_was_seen_for_so_long_and_not_before(skew: float) -> None:
    sights, seen = PodFirstSeenTimes(), pod(None, made=BEGIN + skew)
    assert not shard(sights, seen, 100.0).stuck
    assert not shard(sights, seen, 100.0 + STUCK_SECONDS).stuck
    assert shard(sights, seen, 101.0 + STUCK_SECONDS).stuck


def test_another_transition_and_another_pod_begin_anew() -> None:
    sights = PodFirstSeenTimes()
    sights.observe([pod(BEGIN)], 100.0)
    assert served_seconds(pod(BEGIN), sights.observe([pod(BEGIN)], 110.0)) == 10.0
    assert served_seconds(pod(None), sights.observe([pod(None)], 111.0)) == 0.0
    # Ready with a new transition time: the interruption was never observed.
    for seen in (pod(BEGIN + 5), pod(BEGIN + 5, uid="uid-1")):
        assert served_seconds(seen, sights.observe([seen], 120.0)) == 0.0
        assert served_seconds(seen, sights.observe([seen], 123.0)) == 3.0


def test_pods_that_are_gone_are_forgotten() -> None:
    sights = PodFirstSeenTimes()
    sights.observe([pod(BEGIN)], 100.0)
    sights.observe([], 101.0)
    assert served_seconds(pod(BEGIN), sights.observe([pod(BEGIN)], 200.0)) == 0.0


@pytest.mark.parametrize("skew", [-7200.0, 7200.0])
def test_a_new_worker_takes_its_tenants_in_stages_beside_nodes_of_another_time(
    skew: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Pod.manifest

    def skewed(of: Pod, now: float) -> dict[str, Any]:
        manifest = told(of, now)
        for condition in manifest["status"]["conditions"]:
            if "lastTransitionTime" in condition:
                since = max(filter(None, (of.serves_since, of.found_since)), default=now)
                condition["lastTransitionTime"] = time_of(since + skew)
        return manifest

    monkeypatch.setattr(Pod, "manifest", skewed)
    world = MovingWorld(2)
    world.scale(3)
    world.settle()
    assert world.asked == 3 and all(worker.ready(world.now) for worker in world.pods.values())
