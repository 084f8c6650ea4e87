"""A tenant always reaches the same worker; scaling moves only the share that it must."""

from __future__ import annotations

from collections import Counter

from e2e.kubernetes import Namespace, wait_until
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
    namespace.kubectl("rollout", "status", f"deployment/{gateway}-haproxy", "--timeout", "120s")
    assert owners(namespace, gateway, first_keys()) == before


def test_scaling_up_and_down_moves_only_the_share_that_it_must(namespace: Namespace, two_workers: str) -> None:
    with_two = owners(namespace, two_workers, first_keys())
    namespace.kubectl("scale", f"ggw/{two_workers}", "--replicas=3")
    wait_until(lambda: namespace.is_ready(two_workers, 3), 120, "three workers are ready")
    new = f"{two_workers}-worker-2"
    wait_until(lambda: new in owners(namespace, two_workers, first_keys()).values(), 60, "the new worker has tenants")
    with_three = settled_owners(namespace, two_workers, first_keys())
    moved = {tenant for tenant in TENANTS if with_two[tenant] != with_three[tenant]}
    assert {with_three[tenant] for tenant in moved} == {new}
    assert 0 < len(moved) <= len(TENANTS) * 0.55, Counter(with_three.values())
    namespace.kubectl("scale", f"ggw/{two_workers}", "--replicas=2")
    wait_until(lambda: namespace.get("pod", new) is None, 120, "the third worker is gone")
    assert settled_owners(namespace, two_workers, first_keys()) == with_two
