"""Which worker a tenant belongs to, where HAProxy's ring does not decide."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofgate_operator.build.owners import members, owners
from tests.gateways import gateway


def tenants(count: int, **first: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"name": f"tenant-{number}", "apiKeysSecretRef": {"name": f"keys-{number}"}}
        for number in range(count)
    ]
    made[0] |= first
    return made


def table(count: int, affinity: str = "Required", **first: Any) -> dict[str, int]:
    return owners(gateway(tenants=tenants(100, **first), loadBalancer={"affinity": affinity}), count)


def test_by_default_only_a_placed_tenant_has_an_owner() -> None:
    assert table(3, "Preferred") == {}
    assert table(3, "Preferred", placement=2) == {"tenant-0": 2}


def test_where_affinity_is_required_every_tenant_has_an_owner_and_the_placed_one_its_own() -> None:
    plain = table(3)
    assert len(plain) == 100
    assert set(plain.values()) == {0, 1, 2}
    other = (plain["tenant-0"] + 1) % 3
    assert table(3, placement=other) == plain | {"tenant-0": other}


@pytest.mark.parametrize("affinity", ["Preferred", "Required"])
def test_a_placement_on_a_worker_that_is_not_there_counts_for_nothing(affinity: str) -> None:
    assert table(2, affinity, placement=2) == table(2, affinity)


@given(st.integers(1, 63))
def test_one_worker_more_moves_only_the_tenants_that_it_gets(count: int) -> None:
    before, after = table(count), table(count + 1)
    moved = {tenant for tenant in before if before[tenant] != after[tenant]}
    assert all(after[tenant] == count for tenant in moved)


def test_at_first_all_workers_that_are_wanted_own_tenants() -> None:
    assert members(4, None, []) == 4


def test_a_new_worker_owns_tenants_once_it_is_ready_and_those_before_it_are() -> None:
    assert members(4, 2, {0, 1}) == 2
    assert members(4, 2, {0, 1, 3}) == 2
    assert members(4, 2, {0, 1, 2, 3}) == 4


def test_a_worker_that_is_away_stays_an_owner() -> None:
    assert members(3, 3, {0}) == 3
    assert members(4, 3, {3}) == 4


def test_a_worker_that_is_to_go_owns_nothing_from_then_on() -> None:
    assert members(2, 4, {0, 1, 2, 3}) == 2
