"""A tenant always reaches the same worker; scaling moves only the share that it must."""

from __future__ import annotations

from collections import Counter

from e2e.kubernetes import PATIENCE, Namespace, wait_until
from e2e.operations import Gateway
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import first_keys, owners, settled_owners


def test_a_tenant_reaches_the_same_worker_with_any_key_on_any_connection(namespace: Namespace, gateway: str) -> None:
    asked = {
        f"{tenant} {number} {turn}": key_of(tenant, number)
        for tenant in TENANTS[:8]
        for number in (0, 1)
        for turn in range(3)
    }
    found = owners(namespace, gateway, asked)
    for tenant in TENANTS[:8]:
        assert len({worker for label, worker in found.items() if label.startswith(f"{tenant} ")}) == 1


def test_a_load_balancer_that_restarts_sends_every_tenant_where_it_was(namespace: Namespace, gateway: str) -> None:
    before = owners(namespace, gateway, first_keys())
    namespace.kubectl("rollout", "restart", f"deployment/{gateway}-haproxy")
    namespace.wait_ready("deployment", f"{gateway}-haproxy")
    assert owners(namespace, gateway, first_keys()) == before


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
