"""What is deleted comes back; what is no longer wanted goes."""

from __future__ import annotations

import pytest

from e2e.kubernetes import Namespace, run, wait_until
from e2e.tests import fleet

OWNED = "app.kubernetes.io/managed-by=proofgate-operator,proofgate.dev/gateway={}"
KINDS = (
    "statefulsets,deployments,services,configmaps,secrets,pods,serviceaccounts,networkpolicies,"
    "poddisruptionbudgets,persistentvolumeclaims"
)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("service", ""),
        ("service", "-workers"),
        ("configmap", "-config"),
        ("configmap", "-haproxy"),
        ("secret", "-tenants"),
        ("deployment", "-haproxy"),
        ("poddisruptionbudget", "-worker"),
        ("networkpolicy", "-worker"),
    ],
)
def test_a_deleted_child_comes_back_because_it_went(namespace: Namespace, gateway: str, kind: str, name: str) -> None:
    """Long before a gateway that nothing has happened to is looked at again; `make bench-operator` times it."""
    before = namespace.get(kind, gateway + name)
    assert before is not None
    namespace.kubectl("delete", kind, gateway + name, "--wait=false")

    def came_back() -> bool:
        now = namespace.get(kind, gateway + name)
        return now is not None and now["metadata"]["uid"] != before["metadata"]["uid"]

    wait_until(came_back, 60, f"{kind} {gateway + name} is back")
    wait_until(lambda: namespace.is_ready(gateway, 2), 90, "the gateway is Ready")


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_deleting_a_gateway_leaves_its_volume_with_its_key_and_what_is_held_of_it_and_nothing_if_told_so(
    namespace: Namespace, gateway: str, policy: str
) -> None:
    name = f"short-lived-{policy.lower()}"
    volume = {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": policy}
    namespace.apply(fleet.gateway(name, 1, tenants=fleet.TENANTS[:1], ledger={"volume": volume}))
    wait_until(lambda: namespace.is_ready(name, 1), 120, f"{name} is Ready")
    wait_until(lambda: namespace.get("configmap", f"{name}-checkpoints"), 60, "a checkpoint is held")
    namespace.kubectl("delete", "ggw", name, timeout=120)

    def left() -> set[str]:
        return set(namespace.kubectl("get", KINDS, "--selector", OWNED.format(name), "--output", "name").split())

    volume_and_evidence = {
        f"persistentvolumeclaim/{name}-wal",
        f"configmap/{name}-checkpoints",
        f"secret/{name}-ledger",
    }
    kept = volume_and_evidence if policy == "Retain" else set()
    wait_until(lambda: left() == kept, 120, f"only {kept} is left")
    run(["kubectl", "--namespace", namespace.name, "delete", "--ignore-not-found", *volume_and_evidence])
