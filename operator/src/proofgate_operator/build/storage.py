"""The claims of the ledger's volumes: one that all workers share, or one for each worker."""

from proofgate_operator.api.auditor import AuditorStorage
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.volume import RetainPolicy, VolumeMode
from proofgate_operator.build.naming import (
    KEEP_ANNOTATIONS,
    LEDGER_VOLUME,
    Manifest,
    child_manifest,
    labels,
    names,
)
from proofgate_operator.build.statefulset import COMPONENT

#: The access mode of a claim in each volume mode.
ACCESS_MODES = {VolumeMode.SHARED: "ReadWriteMany", VolumeMode.PER_WORKER: "ReadWriteOnce"}


def claim_names(gateway: Gateway, workers: int) -> tuple[str, ...]:
    """Return the names of the claims that `workers` workers mount, whether or not the operator creates
    them."""
    volume, own = gateway.spec.ledger.volume, names(gateway)
    if volume.mode is VolumeMode.PER_WORKER:
        return tuple(map(own.worker_claim, range(workers)))
    return (volume.existing_claim or own.claim,)


def is_deleted_with_gateway(gateway: Gateway) -> bool:
    """Return whether the evidence is deleted with the gateway, and with it the keys that sign and verify
    it."""
    volume = gateway.spec.ledger.volume
    return volume.retain_policy is RetainPolicy.DELETE and volume.existing_claim is None


def claim(gateway: Gateway, name: str) -> Manifest:
    """Return a claim. Without an owner it outlives the gateway, as `Retain` promises."""
    owned = gateway.spec.ledger.volume.retain_policy is RetainPolicy.DELETE
    head = child_manifest(gateway, "v1", "PersistentVolumeClaim", name, COMPONENT, owned=owned)
    return {**head, "spec": _claim_spec(gateway)}


def state_claim(gateway: Gateway, name: str, component: str, storage: AuditorStorage) -> Manifest:
    """Return the claim of an auditor's or a retention job's state. It is kept as long as the evidence it is
    about."""
    spec: Manifest = {
        "accessModes": [storage.access_mode.value],
        "resources": {"requests": {"storage": storage.size}},
    }
    if storage.storage_class_name is not None:
        spec["storageClassName"] = storage.storage_class_name
    owned = is_deleted_with_gateway(gateway)
    return {
        **child_manifest(gateway, "v1", "PersistentVolumeClaim", name, component, owned=owned),
        "spec": spec,
    }


def retained_state_claim(gateway: Gateway, component: str, live: Manifest) -> Manifest:
    """Return the claim of an auditor or a retention job that was removed, with its current size."""
    fields = ("accessModes", "resources", "storageClassName")
    owned = is_deleted_with_gateway(gateway)
    head = child_manifest(
        gateway, "v1", "PersistentVolumeClaim", live["metadata"]["name"], component, owned=owned
    )
    return {**head, "spec": {name: live["spec"][name] for name in fields if name in live["spec"]}}


def claim_templates(gateway: Gateway) -> list[Manifest]:
    """Return the claim templates of the workers' StatefulSet; empty if the workers share a volume.

    The operator creates the claims itself: a StatefulSet's templates are immutable, so they do not follow a
    volume that grew. If the StatefulSet's controller is faster, the template still gives the worker a claim
    with the operator's labels.
    """
    if gateway.spec.ledger.volume.mode is VolumeMode.SHARED:
        return []
    owned = gateway.spec.ledger.volume.retain_policy is RetainPolicy.DELETE
    metadata: Manifest = {"name": LEDGER_VOLUME, "labels": labels(gateway, COMPONENT, owned=owned)}
    if not owned:
        metadata["annotations"] = dict(KEEP_ANNOTATIONS)
    return [{"metadata": metadata, "spec": _claim_spec(gateway)}]


def _claim_spec(gateway: Gateway) -> Manifest:
    volume = gateway.spec.ledger.volume
    spec: Manifest = {
        "accessModes": [ACCESS_MODES[volume.mode]],
        "resources": {"requests": {"storage": volume.size}},
    }
    if volume.storage_class_name is not None:
        spec["storageClassName"] = volume.storage_class_name
    return spec
