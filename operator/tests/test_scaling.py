"""Workers are added together and removed one by one, without failed requests."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proofgate_operator.api.conditions import ConditionStatus, ConditionType
from proofgate_operator.events import reportable_transitions
from proofgate_operator.plan.reports import WorkerReport
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.shards import Shard, WorkerPhase
from tests.moving_world import BEGIN, DRAIN_SECONDS, MovingWorld, happen
from tests.properties import examples


def phases(world: MovingWorld) -> list[str]:
    return [shard["phase"] for shard in world.shards]


def until(world: MovingWorld, phase: WorkerPhase) -> None:
    """Advance the world until a worker is in a phase."""
    for _ in range(60):
        world.reconcile()
        if phase.value in phases(world):
            return
        world.tick()
    raise AssertionError(f"nobody is {phase}: {world.shards}")


def test_new_workers_come_all_at_once() -> None:
    world = MovingWorld(2)
    world.scale(6)
    world.reconcile()
    assert world.asked == 6
    world.settle()
    assert phases(world) == ["Ready"] * 6


def test_workers_leave_one_by_one_the_highest_first_each_after_it_was_retired() -> None:
    world = MovingWorld(4)
    world.scale(1)
    world.settle()
    assert [removed.split(":")[0] for removed in world.removed] == ["3", "2", "1"]


def test_a_worker_goes_when_its_last_connection_is_closed() -> None:
    world = MovingWorld(2)
    world.pods[1].connections = 6
    world.scale(1)
    until(world, WorkerPhase.RETIRING)
    retired = world.now
    while world.asked == 2:
        assert world.now - retired < DRAIN_SECONDS
        world.run(1)
    assert world.pods[1].connections == 0 and world.now - retired >= 6


def test_a_worker_whose_connections_stay_open_is_not_waited_for_for_ever_and_that_is_said() -> None:
    world = MovingWorld(2)
    world.pods[1].connections = 10_000
    world.scale(1)
    until(world, WorkerPhase.RETIRING)
    retired = world.now
    while world.asked == 2:
        world.run(1)
    assert DRAIN_SECONDS <= world.now - retired <= DRAIN_SECONDS + 2
    assert world.shards[1]["message"] == "demo-worker-1 still has connections open after 10 s"


def test_a_worker_that_cannot_be_reached_is_not_waited_for_for_ever_and_that_is_said() -> None:
    world = MovingWorld(2)
    world.pods[1].unreachable = True
    world.scale(1)
    until(world, WorkerPhase.RETIRING)
    while world.asked == 2:
        world.run(1)
    assert "did not report whether it is idle after 10 s" in world.shards[1]["message"]


def test_the_time_since_a_worker_retired_outlives_the_operator() -> None:
    world = MovingWorld(2)
    world.pods[1].connections = 10_000
    world.scale(1)
    until(world, WorkerPhase.RETIRING)
    since = world.shards[1]["retiringSince"]
    world.tick(4)
    world.reconcile()
    assert world.shards[1]["retiringSince"] == since == time_of(world.now - 4)


def test_a_spec_that_is_raised_again_takes_the_retirement_back() -> None:
    world = MovingWorld(3)
    world.pods[2].connections = 100
    world.scale(2)
    until(world, WorkerPhase.RETIRING)
    world.tick()
    world.scale(3)
    world.settle()
    assert phases(world) == ["Ready"] * 3 and world.removed == []


def test_a_worker_that_drains_already_is_made_anew_when_the_spec_is_raised_again() -> None:
    world = MovingWorld(3)
    world.scale(2)
    until(world, WorkerPhase.LEAVING)
    leaving = world.pods[2].uid
    world.scale(3)
    world.settle()
    assert world.pods[2].uid != leaving


def test_nobody_leaves_while_a_worker_that_stays_is_not_ready() -> None:
    world = MovingWorld(3)
    world.pods[0].broken, world.pods[0].serves_since = True, None
    world.scale(2)
    world.run(30)
    assert world.asked == 3
    safe = world.condition(ConditionType.SCALING_SAFE)
    assert (safe.status, safe.reason) == (ConditionStatus.FALSE, "ScaleDownBlocked")
    assert safe.message == "scaling to 2 workers is blocked: demo-worker-0 waits: CrashLoopBackOff"
    assert [
        told.reason for told in reportable_transitions([{"type": "ScalingSafe", "status": "True"}], [safe])
    ] == ["ScaleDownBlocked"]
    world.pods[0].broken = False
    world.settle()


def test_a_worker_that_breaks_calls_the_one_back_that_retires() -> None:
    world = MovingWorld(3)
    world.pods[2].connections = 100
    world.scale(2)
    until(world, WorkerPhase.RETIRING)
    world.tick()
    world.pods[0].broken, world.pods[0].serves_since = True, None
    world.run(2)
    assert not world.pods[2].retiring and world.asked == 3


def test_nobody_leaves_without_a_volume_to_seal_on() -> None:
    world = MovingWorld(3)
    world.bound = False
    world.tick()
    world.scale(2)
    world.run(30)
    assert world.asked == 3
    assert "PersistentVolumeClaim demo-wal is Lost" in world.condition(ConditionType.SCALING_SAFE).message


def test_a_worker_that_is_to_go_itself_keeps_nobody_from_leaving() -> None:
    world = MovingWorld(4)
    for number in (2, 3):
        world.pods[number].broken, world.pods[number].serves_since = True, None
    world.scale(2)
    world.settle()
    assert world.pods.keys() == {0, 1}


def test_an_annotation_forces_a_scale_down_and_says_so() -> None:
    world = MovingWorld(3)
    world.pods[0].broken, world.pods[0].serves_since = True, None
    world.scale(2)
    world.force(1)
    world.run(20)
    assert world.asked == 3, "forced to another number"
    world.force(2)
    forced = world.reconcile().status.condition(ConditionType.SCALING_SAFE)
    assert (forced.status, forced.reason) == (ConditionStatus.FALSE, "ScaleDownForced")
    assert reportable_transitions(
        [{"type": "ScalingSafe", "status": "False", "reason": "ScaleDownBlocked"}], [forced]
    )
    world.run(30)
    assert world.asked == 2 and world.pods.keys() == {0, 1}


def test_a_worker_that_serves_nobody_need_not_retire() -> None:
    world = MovingWorld(3)
    world.pods[2].broken, world.pods[2].serves_since = True, None
    world.scale(2)
    world.reconcile()
    assert world.asked == 2


def test_a_paused_gateway_moves_nobody() -> None:
    world = MovingWorld(3)
    world.pods[2].connections = 100
    world.scale(2)
    until(world, WorkerPhase.RETIRING)
    since = world.shards[2]["retiringSince"]
    world.world.manifest["spec"]["paused"] = True
    world.run(30)
    assert world.asked == 3 and world.pods[2].retiring
    assert world.shards[2]["retiringSince"] == since


def test_a_time_from_before_its_pod_is_not_a_workers_own() -> None:
    world = MovingWorld(2)
    world.shards = ({"ordinal": 1, "phase": "Retiring", "retiringSince": time_of(BEGIN - 100)},)
    world.scale(1)
    world.reconcile()
    assert world.shards[1]["retiringSince"] == time_of(world.now)


def test_a_worker_that_somebody_else_retired_is_called_back() -> None:
    world = MovingWorld(3)
    world.pods[1].retiring = True
    world.settle()
    assert not world.pods[1].retiring


@pytest.mark.parametrize("writes", range(5))
def test_an_operator_killed_at_any_step_is_followed_by_one_that_goes_on(writes: int) -> None:
    world = MovingWorld(3)
    world.scale(1)
    for _ in range(60):
        world.reconcile(writes)
        world.tick()
        world.reconcile()
        world.tick()
    world.settle()
    assert len(world.removed) == 2


HAPPENINGS = st.one_of(
    st.tuples(st.just("scale"), st.integers(1, 5)),
    st.tuples(st.just("image"), st.sampled_from(["worker:one", "worker:two", "worker:bad"])),
    st.tuples(st.just("break"), st.integers(0, 4)),
    st.tuples(st.just("mend"), st.none()),
    st.tuples(st.just("evict"), st.integers(0, 4)),
    st.tuples(st.just("lose sight"), st.integers(0, 4)),
    st.tuples(st.just("connect"), st.integers(0, 4)),
    st.tuples(st.just("killed after"), st.integers(0, 4)),
    st.tuples(st.just("reconcile"), st.none()),
    st.tuples(st.just("wait"), st.integers(1, 12)),
    st.tuples(st.just("go on"), st.integers(1, 12)),
)


@examples(35)
@example(3, "Shared", [("scale", 1), ("evict", 2)])
@given(st.integers(1, 4), st.sampled_from(["Shared", "PerWorker"]), st.lists(HAPPENINGS, max_size=25))
def test_whatever_happens_workers_leave_one_by_one_and_the_end_is_as_the_spec_says(
    replicas: int, volumes: str, happenings: list[tuple[str, int | str | None]]
) -> None:
    """The world itself asserts what must never happen on the way."""
    world = MovingWorld(replicas, volumes=volumes, bad_images={"worker:bad"})
    for what, value in happenings:
        happen(world, what, value)
    world.use_image("worker:one")
    happen(world, "mend", None)
    world.settle()
    assert phases(world) == ["Ready"] * world.world.gateway.spec.replicas


def test_a_shard_without_an_address_serves_nobody() -> None:
    pod = {"metadata": {"name": "demo-worker-0"}, "status": {}}
    assert not Shard(pod, WorkerReport(retiring=True, connections=3)).serving
