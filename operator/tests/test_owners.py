"""A tenant's owner where HAProxy's ring does not decide, and each worker's share of tenants."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proofgate.haproxy_sidecar.ring import required_owner

from proofgate_operator.build.owners import (
    ABSENT_ANNOTATION,
    JOINING_ANNOTATION,
    MEMBERS_ANNOTATION,
    RAMP_PERCENTAGES,
    Owner,
    RampStage,
    WorkerShares,
    owners,
    read_shares,
    weights,
)
from tests.gateways import api_keys, gateway


def tenants(count: int, **first: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"name": f"tenant-{number}", "apiKeys": api_keys(f"keys-{number}", "only")} for number in range(count)
    ]
    made[0] |= first
    return made


def table(
    count: int, affinity: str = "Required", shares: WorkerShares | None = None, **first: Any
) -> dict[str, Owner]:
    subject = gateway(tenants=tenants(100, **first), loadBalancer={"affinity": affinity})
    return owners(subject, count, WorkerShares(count) if shares is None else shares)


def ordinals(found: dict[str, Owner]) -> dict[str, int]:
    return {tenant: owner.ordinal for tenant, owner in found.items()}


def test_by_default_only_a_placed_tenant_has_an_owner() -> None:
    assert table(3, "Preferred") == {}
    assert table(3, "Preferred", placement=2) == {"tenant-0": Owner(2)}


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_auditors_page_finds_the_owner_that_a_required_affinity_gives(count: int) -> None:
    found = ordinals(table(count))
    assert found == {tenant: required_owner(tenant, range(count)) for tenant in found}


def test_where_affinity_is_required_every_tenant_has_an_owner_and_the_placed_one_its_own() -> None:
    plain = table(3)
    assert len(plain) == 100
    assert set(ordinals(plain).values()) == {0, 1, 2}
    other = (plain["tenant-0"].ordinal + 1) % 3
    assert table(3, placement=other) == plain | {"tenant-0": Owner(other)}


@pytest.mark.parametrize("affinity", ["Preferred", "Required"])
def test_a_placement_on_a_worker_that_is_not_there_counts_for_nothing(affinity: str) -> None:
    assert table(2, affinity, placement=2) == table(2, affinity)


@given(st.integers(1, 63))
def test_one_worker_more_moves_only_the_tenants_that_it_gets(count: int) -> None:
    before, after = ordinals(table(count)), ordinals(table(count + 1))
    moved = {tenant for tenant in before if before[tenant] != after[tenant]}
    assert all(after[tenant] == count for tenant in moved)


def test_at_each_stage_more_tenants_move_to_a_new_worker_and_none_elsewhere_or_back() -> None:
    before, after = ordinals(table(3)), ordinals(table(4))
    share = {tenant for tenant in after if after[tenant] == 3}
    taken: set[str] = set()
    for percent in RAMP_PERCENTAGES:
        found = ordinals(table(4, shares=WorkerShares(3, {3: RampStage(percent, 0)})))
        assert {tenant for tenant in found if found[tenant] != before[tenant]} <= share
        now = {tenant for tenant in found if found[tenant] == 3}
        assert taken < now <= share
        taken = now
    assert taken == share


def test_before_it_is_ready_a_new_worker_has_the_first_stage_and_whoever_had_its_tenants_stands_in() -> None:
    before, found = ordinals(table(2)), table(3, shares=WorkerShares(2))
    moved = {tenant: owner for tenant, owner in found.items() if owner.ordinal == 2}
    assert 0 < len(moved) < 33
    assert {tenant: owner.backup for tenant, owner in moved.items()} == {
        tenant: before[tenant] for tenant in moved
    }
    assert all(owner.backup is None for tenant, owner in found.items() if tenant not in moved)


def test_for_a_worker_that_leaves_those_stand_in_who_will_have_its_tenants() -> None:
    away, without = table(3, shares=WorkerShares(3, absent=(2,))), ordinals(table(2))
    assert ordinals(away) == ordinals(table(3))
    for tenant, owner in away.items():
        assert owner.backup == (without[tenant] if owner.ordinal == 2 else None)


def test_two_workers_that_leave_one_after_the_other_stand_in_for_each_other_only_if_nobody_else_can() -> None:
    assert {owner for owner in table(2, shares=WorkerShares(2, absent=(1, 0))).values()} == {
        Owner(0, 1),
        Owner(1, 0),
    }
    three = table(3, shares=WorkerShares(3, absent=(1, 0))).values()
    assert set(three) == {Owner(0, 2), Owner(1, 2), Owner(2)}


def test_a_placed_tenant_has_a_stand_in_too() -> None:
    found = table(3, shares=WorkerShares(3, absent=(1,)), placement=1)["tenant-0"]
    assert found.ordinal == 1 and found.backup in (0, 2)


def test_nobody_stands_in_for_the_only_worker_or_by_default() -> None:
    assert set(table(1, shares=WorkerShares(1, absent=(0,))).values()) == {Owner(0)}
    assert table(2, "Preferred", WorkerShares(2, absent=(1,)), placement=1) == {"tenant-0": Owner(1)}


def test_every_worker_that_has_not_all_of_its_tenants_has_a_weight_also_those_to_come() -> None:
    found = weights(WorkerShares(2, {3: RampStage(67, 0)}))
    assert found.keys() == set(range(2, 64))
    assert found.pop(3) == 67
    assert set(found.values()) == {34}
    assert weights(WorkerShares(64)) == {}


ORDINALS = st.integers(0, 63)


@given(
    st.integers(1, 64),
    st.dictionaries(
        ORDINALS, st.builds(RampStage, st.sampled_from(RAMP_PERCENTAGES), st.integers(0, 4_000_000_000))
    ),
    st.lists(ORDINALS, unique=True).map(tuple),
)
def test_annotations_tell_what_was_written_to_them(
    members: int, joining: dict[int, RampStage], away: tuple[int, ...]
) -> None:
    shares = WorkerShares(members, joining, away)
    assert read_shares(shares.annotations) == shares


def test_before_anybody_had_tenants_there_are_no_shares() -> None:
    assert read_shares({}) is None
    assert read_shares({MEMBERS_ANNOTATION: "many"}) is None


@given(st.text(), st.text())
def test_what_somebody_else_wrote_into_the_annotations_is_passed_over(joining: str, away: str) -> None:
    found = read_shares({MEMBERS_ANNOTATION: "2", JOINING_ANNOTATION: joining, ABSENT_ANNOTATION: away})
    assert found is not None and found.members == 2
