"""Deletion removes a gateway's objects, except its evidence."""

from __future__ import annotations

from e2e.kubernetes import PATIENCE, Namespace, wait_until
from e2e.operations import Gateway
from e2e.tests import fleet

KINDS = (
    "statefulset",
    "deployment",
    "service",
    "configmap",
    "secret",
    "pod",
    "serviceaccount",
    "networkpolicy",
    "poddisruptionbudget",
    "persistentvolumeclaim",
)


def left(namespace: Namespace, name: str) -> set[str]:
    """The objects of a gateway that exist, as `kind/name`."""
    selector = f"app.kubernetes.io/managed-by=proofgate-operator,proofgate.dev/gateway={name}"
    return {f"{kind}/{item['metadata']['name']}" for kind in KINDS for item in namespace.list(kind, selector)}


def test_deleting_a_gateway_leaves_its_volume_with_its_key_and_what_is_held_of_it_and_nothing_if_told_so(
    namespace: Namespace,
) -> None:
    evidence = {"persistentvolumeclaim/{}-wal", "configmap/{}-checkpoints", "secret/{}-ledger"}
    kept = {"Retain": evidence, "Delete": set()}
    names = {policy: f"short-lived-{policy.lower()}" for policy in kept}
    namespace.apply(fleet.secret(fleet.TENANTS[0]))
    for policy, name in names.items():
        volume = {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": policy}
        namespace.apply(
            fleet.gateway(name, 1, fleet.TENANTS[:1], ledger={"volume": volume}, loadBalancer=fleet.ONE_BALANCER)
        )
    try:
        for name in names.values():
            Gateway(namespace, name).wait_settled(1)
            held = f"{name}-checkpoints"
            wait_until(lambda held=held: namespace.get("configmap", held), PATIENCE, "a checkpoint is held")  # type: ignore[misc]
        for name in names.values():
            namespace.delete("ggw", name, wait=False)
        for policy, name in names.items():
            wanted = {one.format(name) for one in kept[policy]}

            def only_what_is_kept(name: str = name, wanted: set[str] = wanted) -> bool:
                return left(namespace, name) == wanted

            wait_until(only_what_is_kept, PATIENCE, f"only {wanted} is left of {name}")
    finally:
        for name in names.values():
            namespace.delete("ggw", name)
            Gateway(namespace, name).forget()
