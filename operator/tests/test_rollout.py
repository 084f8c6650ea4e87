"""A new template reaches the workers one by one; a broken template reaches one worker only."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from proofgate_operator.api.conditions import ConditionStatus, ConditionType
from proofgate_operator.plan.decide import ReconcilePlan
from proofgate_operator.plan.drift import contains, manifest_digest
from proofgate_operator.plan.observed_state import ObservedState, Ref, ref_of
from tests.moving_world import DRAIN_SECONDS, MovingWorld


def revisions(world: MovingWorld) -> dict[int, str]:
    return {number: pod.revision for number, pod in sorted(world.pods.items())}


def least_serving(world: MovingWorld, seconds: int) -> int:
    """Advance the world, and return the smallest number of serving workers."""
    least = len(world.pods)
    for _ in range(seconds):
        world.run(1)
        serving = [pod for pod in world.pods.values() if pod.serves_since and not pod.ending]
        least = min(least, sum(not pod.retiring for pod in serving))
    return least


def test_a_new_image_reaches_every_worker_and_all_but_one_serve_all_the_time() -> None:
    world = MovingWorld(4)
    world.use_image("worker:next")
    assert least_serving(world, 120) == 3
    assert set(revisions(world).values()) == {"worker:next"}
    assert [removed.split(":")[0] for removed in world.removed] == ["3", "2", "1", "0"]


def test_a_gateway_stays_ready_while_its_workers_are_replaced() -> None:
    world = MovingWorld(3)
    world.use_image("worker:next")
    reasons = set()
    for _ in range(120):
        status = world.reconcile().status
        assert status.condition(ConditionType.READY).is_true
        reasons.add(status.condition(ConditionType.PROGRESSING).reason)
        world.tick()
    assert "Rolling" in reasons and world.settled(world.plan())


def test_the_only_worker_is_replaced_behind_a_second_one() -> None:
    world = MovingWorld(1)
    world.use_image("worker:next")
    assert least_serving(world, 120) == 1
    assert revisions(world) == {0: "worker:next"}
    assert world.asked == 1


def test_the_only_worker_is_replaced_alone_where_no_second_one_is_wanted() -> None:
    world = MovingWorld(1, spec={"rollout": {"surge": False}})
    world.use_image("worker:next")
    most = 0
    for _ in range(60):
        world.run(1)
        most = max(most, len(world.pods))
    assert most == 1 and revisions(world) == {0: "worker:next"}


def test_a_broken_version_reaches_one_worker_and_the_others_go_on() -> None:
    world = MovingWorld(3, bad_images={"worker:bad"})
    world.use_image("worker:bad")
    world.run(120)
    assert list(revisions(world).values()).count("worker:bad") == 1
    progressing = world.condition(ConditionType.PROGRESSING)
    assert (progressing.status, progressing.reason) == (ConditionStatus.FALSE, "RolloutStalled")
    assert "demo-worker-2 waits: CrashLoopBackOff" in progressing.message
    assert not world.condition(ConditionType.WORKERS_AVAILABLE).is_true


def test_a_newer_version_is_taken_up_where_the_broken_one_stopped() -> None:
    world = MovingWorld(3, bad_images={"worker:bad"})
    world.use_image("worker:bad")
    world.run(60)
    world.use_image("worker:good")
    world.settle()
    assert set(revisions(world).values()) == {"worker:good"}


def test_a_version_that_is_taken_back_leaves_the_old_workers_alone() -> None:
    world = MovingWorld(3, bad_images={"worker:bad"})
    before = {number: pod.uid for number, pod in world.pods.items()}
    world.use_image("worker:bad")
    world.run(60)
    world.use_image("worker:test")
    world.settle()
    kept = {number: pod.uid for number, pod in world.pods.items()}
    assert {number for number in before if kept[number] != before[number]} == {2}


def test_a_broken_version_of_the_only_worker_never_replaces_it() -> None:
    world = MovingWorld(1, bad_images={"worker:bad"})
    first = world.pods[0].uid
    world.use_image("worker:bad")
    world.run(120)
    assert world.pods[0].uid == first and not world.pods[0].retiring
    world.use_image("worker:test")
    world.settle()
    assert world.pods[0].uid == first


def test_a_worker_that_is_not_ready_is_replaced_first() -> None:
    world = MovingWorld(3)
    world.pods[0].broken, world.pods[0].serves_since = True, None
    world.use_image("worker:next")
    world.settle()
    assert [removed.split(":")[0] for removed in world.removed] == ["0", "2", "1"]


def test_a_scale_down_waits_for_a_roll_and_says_so() -> None:
    world = MovingWorld(4)
    world.use_image("worker:next")
    world.run(2)
    world.scale(2)
    world.run(2)
    assert world.asked == 4
    safe = world.condition(ConditionType.SCALING_SAFE)
    assert (safe.status, safe.reason) == (ConditionStatus.FALSE, "ScaleDownBlocked")
    assert "workers are being replaced" in safe.message
    world.settle()
    # The two workers that the scale-down removes are not replaced first.
    assert sorted(removed.split(":")[0] for removed in world.removed) == ["0", "1", "2", "3"]


def test_a_roll_begins_when_a_worker_that_was_scaled_away_is_gone() -> None:
    """The world asserts that at most one worker is leaving at a time."""
    world = MovingWorld(3)
    world.scale(2)
    while not world.pods[2].was_retired:
        world.run(1)
    while world.asked == 3:
        world.tick()
        if world.plan().manifests_to_apply:
            # The reconcile that removes the worker also applies the new image.
            world.use_image("worker:next")
        world.reconcile()
    world.settle()
    assert set(revisions(world).values()) == {"worker:next"}


def test_a_worker_with_open_connections_is_waited_for_before_it_is_replaced() -> None:
    world = MovingWorld(2)
    world.pods[1].connections = 10_000
    world.use_image("worker:next")
    world.run(3)
    retired = world.now
    while not world.removed:
        world.run(1)
    assert world.now - retired >= DRAIN_SECONDS - 3


def test_nobody_is_replaced_without_a_volume_to_start_on() -> None:
    world = MovingWorld(3)
    world.bound = False
    world.tick()
    world.use_image("worker:next")
    world.run(30)
    assert world.removed == []
    assert "demo-wal is Lost" in world.condition(ConditionType.PROGRESSING).message


def test_the_manifests_of_the_same_build_replace_nobody() -> None:
    """A new operator of the same build writes the same manifests as the previous one."""
    world = MovingWorld(3)
    uids = {pod.uid for pod in world.pods.values()}
    world.reconcile(0)
    world.run(60)
    assert {pod.uid for pod in world.pods.values()} == uids and world.removed == []


def test_a_quantity_that_the_api_server_spells_otherwise_is_no_drift() -> None:
    world = MovingWorld(1, spec={"worker": {"memory": "1024Mi", "cpu": "1000m"}})
    live = copy.deepcopy(world.world.child("StatefulSet", "demo-worker"))
    for size in live["spec"]["template"]["spec"]["containers"][0]["resources"].values():
        size |= {"memory": "1Gi", "cpu": "1"}
    assert contains(live, world.world.child("StatefulSet", "demo-worker"))
    live["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] = "2Gi"
    assert not contains(live, world.world.child("StatefulSet", "demo-worker"))


def test_a_set_that_its_controller_rolled_is_patched_before_it_is_applied() -> None:
    world = MovingWorld(2)
    live = world.world.child("StatefulSet", "demo-worker")
    live["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    [(ref, patch)] = world.plan().merge_patches.items()
    assert (ref.kind, ref.name) == ("StatefulSet", "demo-worker")
    assert patch == {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
    live["spec"]["updateStrategy"] = {"type": "OnDelete"}
    assert world.plan().merge_patches == {}


class Disputed(MovingWorld):
    """Somebody changes a field of the workers' StatefulSet after each write. The operator remembers its
    writes, as a running one does."""

    disputed = False
    tried: Mapping[Ref, str] = MappingProxyType({})

    def observed(self) -> ObservedState:
        return replace(super().observed(), attempted_digests=self.tried)

    def reconcile(self, writes: int | None = None) -> ReconcilePlan:
        plan = super().reconcile(writes)
        self.tried = {
            **self.tried,
            **{ref_of(found): manifest_digest(found) for found in plan.manifests_to_apply},
        }
        if self.disputed:
            self.world.child("StatefulSet", "demo-worker")["spec"]["revisionHistoryLimit"] = 10
        return plan


def test_a_set_that_somebody_contests_keeps_no_retired_worker_from_being_replaced() -> None:
    world = Disputed(3)
    world.use_image("worker:next")
    world.disputed = True
    assert least_serving(world, 120) == 2
    assert set(revisions(world).values()) == {"worker:next"}
