"""Where a ledger is kept: the claims of its volumes."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import ObjectName, Quantity, Section, rules


class RetainPolicy(StrEnum):
    """What becomes of the volume when the gateway is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class VolumeMode(StrEnum):
    """Whose a volume of the ledger is."""

    SHARED = "Shared"
    PER_WORKER = "PerWorker"


class Volume(Section):
    """Where the ledger is kept: on one volume for all workers, or on one for each."""

    mode: VolumeMode = VolumeMode.SHARED
    """Shared: one volume for all workers (ReadWriteMany). PerWorker: a claim for each worker (ReadWriteOnce),
    which stays when the worker is scaled away and is its own again when it comes back. A worker then sees no
    ledger but its own, so limits are counted by each worker for itself: a tenant that another worker serves
    (after scaling, while its own is away, or with tokens) has its whole limits there once more. Immutable."""
    storage_class_name: Annotated[
        str | None, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    ] = None
    """Storage class of the claim; it must offer ReadWriteMany for mode Shared, ReadWriteOnce for PerWorker.
    Absent: the cluster's default. Immutable."""
    size: Quantity = "10Gi"
    """Size of the claim, or of each. It may grow where the storage class allows expansion, and never
    shrinks."""
    existing_claim: ObjectName | None = None
    """Use this claim instead of making one, for mode Shared only; the operator never changes or deletes it.
    Immutable."""
    retain_policy: RetainPolicy = RetainPolicy.RETAIN
    """Retain: the claim, or all of them, survives the gateway. Delete: they go with the gateway, and the
    evidence with them. Scaling down deletes no claim, whatever this says."""


LedgerVolume = Annotated[
    Volume,
    Field(
        json_schema_extra=rules(
            {
                "rule": "self.mode == oldSelf.mode",
                "fieldPath": ".mode",
                "message": "spec.ledger.volume.mode is immutable",
            },
            {
                "rule": "has(self.storageClassName) == has(oldSelf.storageClassName) &&"
                " (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",
                # A path to a field that may have been removed is no path: the message names it instead.
                "message": "spec.ledger.volume.storageClassName is immutable",
            },
            {
                "rule": "has(self.existingClaim) == has(oldSelf.existingClaim) &&"
                " (!has(self.existingClaim) || self.existingClaim == oldSelf.existingClaim)",
                "message": "spec.ledger.volume.existingClaim is immutable",
            },
            {
                "rule": "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
                "fieldPath": ".size",
                "message": "spec.ledger.volume.size can grow but not shrink",
            },
            {
                "rule": "!has(self.existingClaim) || !has(self.storageClassName)",
                "message": "spec.ledger.volume: set existingClaim or storageClassName, not both",
            },
            {
                "rule": "self.mode == 'Shared' || !has(self.existingClaim)",
                "message": "spec.ledger.volume: existingClaim is one claim for all workers, so it needs"
                " mode Shared",
            },
        )
    ),
]
