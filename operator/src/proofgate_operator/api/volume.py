"""The section `volume`: the claims of a ledger."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import ObjectName, Quantity, Section, cel_rules


class RetainPolicy(StrEnum):
    """Treatment of the claims when the gateway is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class VolumeMode(StrEnum):
    """Whether workers share one volume."""

    SHARED = "Shared"
    PER_WORKER = "PerWorker"


class Volume(Section):
    """Storage of the ledger: one volume for all workers, or one for each."""

    mode: VolumeMode = VolumeMode.SHARED
    """Whether workers share one volume. Shared: one volume for all workers (ReadWriteMany). PerWorker: a
    claim for each worker (ReadWriteOnce), which is kept when the worker is scaled down and used again when it
    returns. Each worker then sees only its own ledger and counts limits separately: a tenant that moves to
    another worker gets its full limits again on that worker. A tenant moves after scaling, while its own
    worker is unavailable. Immutable."""
    storage_class_name: Annotated[
        str | None, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    ] = None
    """Storage class of the claim; it must offer ReadWriteMany for mode Shared, ReadWriteOnce for PerWorker.
    Absent: the cluster's default. Immutable."""
    size: Quantity = "10Gi"
    """Size of each claim. You can increase it if the storage class allows expansion. You cannot decrease
    it."""
    existing_claim: ObjectName | None = None
    """Name of an existing claim to use, for mode Shared only. The operator never changes or deletes it.
    Absent: the operator creates one. Immutable."""
    retain_policy: RetainPolicy = RetainPolicy.RETAIN
    """Treatment of the claims when the gateway is deleted. Retain: the claims are kept. Delete: the claims
    are deleted, together with the evidence. Scaling down never deletes a claim."""


LedgerVolume = Annotated[
    Volume,
    Field(
        json_schema_extra=cel_rules(
            {
                "rule": "self.mode == oldSelf.mode",
                "fieldPath": ".mode",
                "message": "spec.ledger.volume.mode is immutable",
            },
            {
                "rule": "has(self.storageClassName) == has(oldSelf.storageClassName) &&"
                " (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",
                # A field path is invalid if the field may have been removed, so the message names the field
                # instead.
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
