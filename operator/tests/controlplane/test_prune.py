"""Objects that must never be pruned, on a real API server: labels of earlier releases are removed."""

import pytest

from proofgate_operator.build.naming import KEEP_ANNOTATIONS
from tests.controlplane.api import Manifest, path_of
from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for

pytestmark = pytest.mark.controlplane

INSTANCE = "app.kubernetes.io/instance"
KEPT = (("secret", "demo-ledger"), ("secret", "demo-shred-keys"), ("pvc", "demo-wal"))


def _as_before(namespace: Namespace, kind: str, name: str, manager: str, apply: bool) -> None:
    """Make an object as an earlier release left it: with its label, without the annotations to keep it."""
    labels = {INSTANCE: "demo"}
    path = path_of(kind, name, namespace.name)
    if apply:
        live = namespace.there(kind, name)
        own = {label: text for label, text in live["metadata"]["labels"].items() if label != INSTANCE}
        head = {"name": name, "labels": {**own, **labels}}
        body: Manifest = {"apiVersion": "v1", "kind": live["kind"], "metadata": head}
        if "spec" in live:
            body["spec"] = {name: live["spec"][name] for name in ("accessModes", "resources")}
        query = {"fieldManager": manager, "force": "true"}
        content_type = "application/apply-patch+yaml"
    else:
        body, query = {"metadata": {"labels": labels}}, {"fieldManager": manager}
        content_type = "application/merge-patch+json"
    namespace.plane.api.request("PATCH", path, body, content_type=content_type, query=query)
    # This comes last: the operator removes no label from an object that has the annotations to keep it.
    nothing = dict.fromkeys(KEEP_ANNOTATIONS)
    namespace.plane.api.patch(kind, name, {"metadata": {"annotations": nothing}}, namespace.name)


@pytest.mark.parametrize(
    ("manager", "apply"),
    [("proofgate-operator", True), ("proofgate-operator", False), ("kube-controller-manager", False)],
)
def test_a_label_of_a_release_before_is_taken_off_whoever_set_it(
    namespace: Namespace, manager: str, apply: bool
) -> None:
    namespace.give_secrets()
    namespace.start()
    namespace.apply(gateway_manifest(ledger={"volume": {"size": "1Gi"}, "shredKeys": {}}))
    namespace.settle()
    for kind, name in KEPT:
        _as_before(namespace, kind, name, manager, apply)

    def is_kept(kind: str, name: str) -> bool:
        metadata = namespace.there(kind, name)["metadata"]
        asks = metadata.get("annotations", {}).items() >= KEEP_ANNOTATIONS.items()
        return asks and INSTANCE not in metadata["labels"] and not metadata.get("ownerReferences")

    for kind, name in KEPT:
        wait_for(
            lambda kind=kind, name=name: is_kept(kind, name), f"{kind} {name} is protected against pruning"
        )
    assert namespace.there("sts", "demo-worker")["metadata"]["labels"][INSTANCE] == "demo"
    namespace.settle()
