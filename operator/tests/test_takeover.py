"""Tenants move without rejected requests: to a new worker in stages, off a worker before it leaves."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofgate_operator.api.conditions import ConditionType
from tests.moving_world import MovingWorld, happen
from tests.properties import examples
from tests.required_world import RequiredWorld


def stages(world: RequiredWorld, number: int, writes: int | None = None) -> Iterator[tuple[float, int]]:
    """Advance until a worker has all of its tenants; yield the time and its share at each change."""
    last = 0
    for _ in range(60):
        world.reconcile(writes)
        percent = world.percents()[number]
        if percent != last:
            yield world.now, percent
        last = percent
        if percent == 100:
            return
        world.tick()
    raise AssertionError(f"worker {number} never has all of its tenants")


def test_a_first_deployment_begins_with_the_whole() -> None:
    assert RequiredWorld(3).percents() == {0: 100, 1: 100, 2: 100}


def test_a_new_worker_takes_its_tenants_in_stages_that_last() -> None:
    world = RequiredWorld(2)
    before = world.written()
    world.scale(3)
    told = list(stages(world, 2))
    assert [percent for _, percent in told] == [34, 67, 100]
    found = world.pods[2].found_since
    assert found is not None and told[1][0] - found >= 2 and told[2][0] - told[1][0] >= 2
    world.settle()
    after = world.written()
    moved = {tenant for tenant in after if after[tenant] != before[tenant]}
    assert moved and {tuple(after[tenant]) for tenant in moved} == {(2,)}


def test_the_first_stage_holds_before_the_new_worker_is_ready() -> None:
    world = RequiredWorld(2)
    assert "worker-2 34\n" in world.entry("weights.map")
    world.scale(3)
    world.reconcile()
    assert 2 not in world.pods
    assert any(both[0] == 2 and len(both) == 2 for both in world.written().values())


def test_a_stage_costs_one_write_and_a_mark_for_each_haproxy() -> None:
    world = RequiredWorld(2)
    world.scale(3)
    writes = []
    for _ in range(60):
        plan = world.reconcile()
        if 2 in world.pods and world.pods[2].ready(world.now):
            writes += [ref["metadata"]["name"] for ref in plan.manifests_to_apply] + list(
                plan.pod_annotations
            )
        world.tick()
    stage = ["demo-tenants", "demo-haproxy-a", "demo-haproxy-b"]
    returned = [name for name in writes if name != "demo-worker-2"]
    assert returned == stage * 2


def test_while_tenants_move_the_gateway_says_so_and_is_reconciled() -> None:
    world = RequiredWorld(2)
    world.scale(3)
    while not (2 in world.pods and world.pods[2].ready(world.now)):
        world.run(1)
    plan = world.reconcile()
    told = plan.status.condition(ConditionType.PROGRESSING)
    assert (told.reason, told.message) == ("TenantsMoving", "tenants are moving to demo-worker-2")
    assert plan.time_driven
    world.settle()
    assert world.condition(ConditionType.PROGRESSING).reason == "Settled"


def test_a_worker_that_was_a_member_keeps_its_weight_when_it_comes_back() -> None:
    world = RequiredWorld(3)
    world.pods[1].broken, world.pods[1].serves_since = True, None
    world.run(5)
    assert set(world.percents().values()) == {100}
    world.pods[1].broken = False
    world.run(5)
    assert set(world.percents().values()) == {100}


def test_a_worker_that_was_scaled_away_begins_anew() -> None:
    world = RequiredWorld(3)
    world.scale(2)
    world.settle()
    assert "worker-2 34\n" in world.entry("weights.map")
    world.scale(3)
    assert [percent for _, percent in stages(world, 2)] == [34, 67, 100]


@pytest.mark.parametrize("writes", range(4))
def test_an_operator_killed_between_stages_is_followed_by_one_that_goes_on(writes: int) -> None:
    world = RequiredWorld(2)
    world.scale(4)
    for _ in range(30):
        world.reconcile(writes)
        world.tick()
        world.reconcile()
        world.tick()
    world.settle()
    assert set(world.percents().values()) == {100} and world.turned_away == []


def test_a_clock_that_was_set_back_stops_no_stage() -> None:
    world = RequiredWorld(2)
    world.scale(3)
    for _, percent in stages(world, 2):
        if percent == 67:
            world.now -= 3600
            world.pods[2].serves_since = world.pods[2].found_since = world.now - 10
    assert world.percents()[2] == 100


# --- Affinity Required: workers that leave


def holders(world: RequiredWorld) -> list[dict[str, list[int]]]:
    return [balancer.owners for balancer in world.balancers.values()]


def test_before_a_worker_retires_every_haproxy_knows_who_stands_in_for_it() -> None:
    world = RequiredWorld(3)
    world.use_image("worker:next")
    seen = set()
    for _ in range(200):
        plan = world.plan()
        for pod in plan.pods_to_retire:
            number = int(pod["metadata"]["name"].rsplit("-", 1)[1])
            seen.add(number)
            for owners in holders(world):
                assert all(len(both) == 2 for both in owners.values() if both[0] == number)
        world.run(1)
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_roll_turns_no_tenant_away(replicas: int) -> None:
    world = RequiredWorld(replicas)
    before = world.written()
    world.use_image("worker:next")
    world.settle()
    assert world.turned_away == []
    assert world.written() == before, "every tenant has its own worker again"
    assert {pod.revision for pod in world.pods.values()} == {"worker:next"}


def test_scaling_up_and_down_turns_no_tenant_away() -> None:
    world = RequiredWorld(2)
    before = world.written()
    world.scale(5)
    world.settle()
    world.scale(2)
    world.settle()
    assert world.turned_away == [] and world.written() == before


def test_a_scale_down_that_is_taken_back_gives_the_tenants_back() -> None:
    world = RequiredWorld(3)
    before = world.written()
    world.pods[2].connections = 100
    world.scale(2)
    while not world.pods[2].retiring:
        world.run(1)
    assert any(len(both) == 2 for both in world.written().values())
    world.scale(3)
    world.settle()
    assert world.turned_away == [] and world.written() == before and world.removed == []


def test_a_scale_down_that_is_taken_back_before_anybody_retires_gives_the_tenants_back() -> None:
    world = RequiredWorld(3)
    before = world.written()
    world.scale(2)
    world.run(2)
    assert not world.pods[2].retiring and world.written() != before
    world.scale(3)
    world.run(2)
    assert world.written() == before


def test_nobody_stands_in_for_a_worker_that_dies() -> None:
    world = RequiredWorld(3)
    world.pods[1].broken, world.pods[1].serves_since = True, None
    world.run(5)
    assert {owner for _, _, owner in world.turned_away} == {1}
    assert all(len(both) == 1 for both in world.written().values())


def test_somebody_stands_in_for_a_worker_whose_pod_somebody_else_deletes() -> None:
    world = RequiredWorld(3)
    world.pods[1].ending = True
    world.reconcile()
    assert all(len(both) == 2 for both in world.written().values() if both[0] == 1)
    before = world.written()
    world.settle()
    assert {tenant: both[:1] for tenant, both in before.items()} == world.written()


def test_a_version_that_does_not_start_leaves_the_stand_in_in_its_place() -> None:
    world = RequiredWorld(3, bad_images={"worker:bad"})
    world.use_image("worker:bad")
    world.run(120)
    assert world.turned_away == []
    world.use_image("worker:good")
    world.settle()
    assert world.turned_away == [] and all(len(both) == 1 for both in world.written().values())


def test_a_kubelet_that_is_slow_turns_no_tenant_away() -> None:
    world = RequiredWorld(2)
    world.balancers["demo-haproxy-b"].map_delay = 30
    world.use_image("worker:next")
    world.settle()
    assert world.turned_away == []


def test_a_haproxy_that_has_not_heard_of_the_stand_in_is_waited_for() -> None:
    world = RequiredWorld(2)
    for balancer in world.balancers.values():
        balancer.file = None
    world.use_image("worker:next")
    for _ in range(20):
        world.reconcile()
        # Somebody repeatedly removes the mark.
        world.world.balancers[1]["metadata"]["annotations"] = {}
        world.tick()
    assert not any(pod.retiring for pod in world.pods.values()) and world.removed == []
    world.settle()


def test_the_only_worker_that_nobody_can_stand_in_for_is_replaced_all_the_same() -> None:
    world = RequiredWorld(1)
    world.world.manifest["spec"]["rollout"] = {"surge": False}
    world.use_image("worker:next")
    world.settle()
    assert world.pods[0].revision == "worker:next"


def test_by_default_nobody_is_waited_for_before_a_worker_retires() -> None:
    world = MovingWorld(2)
    world.use_image("worker:next")
    for _ in range(10):
        plan = world.reconcile()
        if plan.pods_to_retire:
            return
        assert "demo-tenants" not in [written["metadata"]["name"] for written in plan.manifests_to_apply]
        world.tick()
    raise AssertionError("nobody retires")


WANTED = st.one_of(
    st.tuples(st.just("scale"), st.integers(1, 5)),
    st.tuples(st.just("image"), st.sampled_from(["worker:one", "worker:two", "worker:bad"])),
    st.tuples(st.just("connect"), st.integers(0, 4)),
    st.tuples(st.just("killed after"), st.integers(0, 4)),
    st.tuples(st.just("wait"), st.integers(1, 12)),
    st.tuples(st.just("go on"), st.integers(1, 20)),
)


@examples(25)
@given(st.integers(1, 4), st.lists(WANTED, max_size=25))
def test_whatever_is_wanted_in_whatever_order_no_tenant_is_turned_away_or_has_two_owners(
    replicas: int, happenings: list[tuple[str, int | str]]
) -> None:
    world = RequiredWorld(replicas, bad_images={"worker:bad"})
    for what, value in happenings:
        happen(world, what, value)
    world.use_image("worker:one")
    world.settle()
    assert world.turned_away == []
    assert set(world.percents().values()) == {100}
    assert world.written() == RequiredWorld(world.world.gateway.spec.replicas).written()
