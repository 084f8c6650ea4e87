"""Plans for some namespaces or with shared limits, while namespaces cannot be read: each label selector keeps
its last result, and removals in the spec take effect immediately."""

from collections.abc import Callable
from typing import Any

import pytest

from proofgate_operator.plan.unreadable_resources import GRACE_SECONDS
from tests.test_attached_tenants import PLANS, digest_of
from tests.test_may_not_look import BLINKS, EVERY, FORBIDDEN, LABELS, SELECTED, T3, TEN, World

ALL: dict[str, Any] = {"namespaces": {"from": "All"}}
GOLD = {"selector": {"matchLabels": {"tier": "gold"}}, "names": ["team-t0"]}
PLANS_OF_SOME = [{**PLANS[0], "allowedNamespaces": GOLD}]


def world_of(allowed: dict[str, Any], plans: list[dict[str, Any]]) -> World:
    """Return a world in which every namespace has the labels of both selectors, except t0's namespace, which
    the plan names."""
    made = World(allowed, plans=plans)
    made.cluster.namespace_labels = {
        f"team-{name}": {"llm": "yes", **({} if name == "t0" else {"tier": "gold"})} for name in TEN
    }
    made.add(*TEN)
    made.settle()
    assert set(made.held()) == EVERY
    return made


def respecify(world: World, change: Callable[[dict[str, Any]], None]) -> None:
    found = world.cluster.find("GovernanceGateway", "demo")
    change(found["spec"])
    found["metadata"]["generation"] += 1
    world.cluster.announce()
    world.settle()


@pytest.mark.parametrize("blink", BLINKS)
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("allowed", [ALL, SELECTED], ids=["all", "selected"])
def test_labels_of_a_plan_that_nobody_may_read_just_now_shut_nobody_out(
    allowed: dict[str, Any], restarted: bool, blink: str
) -> None:
    world = world_of(allowed, PLANS_OF_SOME)
    world.blink(BLINKS[blink], LABELS)
    if restarted:
        world.start_anew()
    world.resync()
    world.add("late")
    world.settle()
    assert set(world.held()) == EVERY, "a namespace whose labels were never read is not accepted"
    assert "cannot list namespaces in all namespaces" in world.gateway_condition()[2]
    assert world.gateway_condition()[0] == "Unknown" and world.gateway_condition("Ready")[0] == "True"
    world.heal()
    world.settle()
    assert set(world.held()) == EVERY and world.gateway_condition()[:2] == ("True", "Resolved")


def test_labels_of_a_plan_that_nobody_may_read_for_long_take_it_from_those_without_a_name() -> None:
    world = world_of(ALL, PLANS_OF_SOME)
    world.blink(FORBIDDEN, LABELS)
    world.resync()
    world.later(0)
    assert set(world.held()) == EVERY
    world.later(GRACE_SECONDS)
    assert set(world.held()) == {digest_of("t0")}
    assert world.condition("t3", "Accepted")[:2] == ("False", "PlanNotAllowed")
    assert world.gateway_condition()[1] == "HoldEnded"
    world.heal()
    world.settle()
    assert set(world.held()) == EVERY


def test_a_selector_that_changes_while_labels_cannot_be_read_leaves_the_other_ones_answer() -> None:
    world = world_of(SELECTED, PLANS_OF_SOME)
    world.blink(FORBIDDEN, LABELS)

    def change(spec: dict[str, Any]) -> None:
        spec["plans"][0]["allowedNamespaces"]["selector"]["matchLabels"] = {"tier": "platinum"}

    respecify(world, change)
    assert set(world.held()) == {digest_of("t0")}
    assert world.condition("t3", "Accepted")[:2] == ("False", "PlanNotAllowed")
    assert world.condition("t0", "Accepted")[:2] == ("True", "Accepted")


def test_what_another_operator_let_in_by_name_is_none_of_the_labels_answer() -> None:
    plans = [*PLANS_OF_SOME, {"name": "silver", "allowedNamespaces": {"selector": GOLD["selector"]}}]
    world = world_of(ALL, plans)
    world.give_change("t0", lambda spec: spec.update(plan="silver"))
    world.settle()
    assert world.condition("t0", "Accepted")[1] == "PlanNotAllowed"
    world.give_change("t0", lambda spec: spec.update(plan=PLANS[0]["name"]))
    world.settle()
    assert world.condition("t0", "Accepted")[1] == "Accepted"
    world.blink(FORBIDDEN, LABELS)
    world.start_anew()
    world.settle()
    world.give_change("t0", lambda spec: spec.update(plan="silver"))
    world.settle()
    assert world.condition("t0", "Accepted")[1] == "PlanNotAllowed"
    assert set(world.held()) == EVERY - {digest_of("t0")}


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec["plans"][0].update(allowedNamespaces={"names": ["team-t1"]}),
        lambda spec: spec["plans"].pop(0),
        lambda spec: spec["allowedTenants"].update(namespaces={"from": "Same"}),
    ],
    ids=["namespaces of the plan", "the plan", "namespaces of the gateway"],
)
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_what_the_spec_takes_away_goes_at_once_although_the_namespace_cannot_be_listed(
    restarted: bool, change: Callable[[dict[str, Any]], None]
) -> None:
    world = World(ALL, plans=[{**PLANS[0]}, {"name": "other"}])
    world.add(*TEN)
    world.settle()
    if restarted:
        world.start_barred("team-t3")
    else:
        world.bar("team-t3")
    world.settle()
    assert digest_of("t3") in world.held()
    respecify(world, change)
    assert digest_of("t3") not in world.held()


def test_a_share_of_a_plan_stays_with_those_who_have_it_while_nobody_may_look() -> None:
    world = World(ALL, plans=[{**PLANS[0], "perNamespace": {"tenants": 1}}])
    world.add(*TEN)
    world.settle()
    world.blink(FORBIDDEN, T3)
    world.bar("team-t4")
    world.start_anew()
    world.settle()
    assert set(world.held()) == EVERY
    respecify(world, lambda spec: spec["plans"][0].update(perNamespace={"tenants": 2}))
    assert set(world.held()) == EVERY


def test_a_held_key_expires_when_its_item_says_and_its_tenant_is_told() -> None:
    world = World()
    world.add(*TEN)
    world.settle()
    world.give_change("t3", lambda spec: spec["apiKeys"][0].update(notAfter="2020-01-01T00:00:00Z"))
    world.blink(FORBIDDEN, T3)
    world.settle()
    assert world.condition("t3", "KeysValid")[:2] == ("Unknown", "MayNotLook")
    assert world.condition("t3", "Ready")[:2] == ("Unknown", "MayNotLook")
    world.heal()
    world.later(15)
    assert world.condition("t3", "KeysValid")[:2] == ("False", "KeysExpired")
    assert world.condition("t3", "Ready")[:2] == ("False", "KeysExpired")
