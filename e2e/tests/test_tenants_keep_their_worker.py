"""A tenant always reaches the same worker; scaling moves only the necessary share of tenants."""

from __future__ import annotations

from collections import Counter

from e2e.kubernetes import PATIENCE, Namespace, wait_until
from e2e.operations import Gateway
from e2e.tests.fleet import TENANTS
from e2e.tests.traffic import first_keys, owners, settled_owners


def test_scaling_up_and_down_moves_only_the_share_that_it_must(namespace: Namespace, two_workers: str) -> None:
    fleet = Gateway(namespace, two_workers)
    with_two = owners(namespace, two_workers, first_keys())
    fleet.scale(3)
    new = f"{two_workers}-worker-2"
    asked = first_keys()
    wait_until(lambda: new in owners(namespace, two_workers, asked).values(), PATIENCE, "the new worker has tenants")
    with_three = settled_owners(namespace, two_workers, first_keys())
    moved = {tenant for tenant in TENANTS if with_two[tenant] != with_three[tenant]}
    assert {with_three[tenant] for tenant in moved} == {new}
    assert 0 < len(moved) <= len(TENANTS) * 0.55, Counter(with_three.values())
    fleet.scale(2)
    wait_until(lambda: owners(namespace, two_workers, asked) == with_two, PATIENCE, "all are where they were")
