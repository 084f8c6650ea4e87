"""The claim of the ledger's volume."""

from proofgate_operator.api.types import Gateway, RetainPolicy
from proofgate_operator.build.naming import Manifest, child, names
from proofgate_operator.build.statefulset import COMPONENT


def claim(gateway: Gateway) -> Manifest:
    """Return the claim. Without an owner it outlives the gateway, which is what `Retain` promises."""
    volume = gateway.spec.ledger.volume
    owned = volume.retain_policy is RetainPolicy.DELETE
    spec: Manifest = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": volume.size}},
    }
    if volume.storage_class_name is not None:
        spec["storageClassName"] = volume.storage_class_name
    head = child(gateway, "v1", "PersistentVolumeClaim", names(gateway).claim, COMPONENT, owned=owned)
    return {**head, "spec": spec}
