"""The part of the spec that says how exchanges are recorded. A change replaces the workers one by one."""

from enum import StrEnum
from typing import Annotated

from proofgate_schema.payloads import Payloads
from pydantic import Field

from proofgate_operator.api.fields import SECRET_KEY, Quantity, SecretKeyRef, SecretRef, Section, rules
from proofgate_operator.api.volume import LedgerVolume, Volume

#: A schema-less URL. It is a line of every checkpoint and names its signature: no space and no `+` (C2SP
#: signed-note).
_LEDGER_ORIGIN = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)*$"


class Durability(StrEnum):
    """What "recorded" means before a byte leaves."""

    WRITTEN = "Written"
    SYNCED = "Synced"


class Rotation(Section):
    """When a worker's log ends and its next one begins, while it serves. No request notices."""

    size: Annotated[
        Quantity,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "quantity(self).compareTo(quantity('1Mi')) >= 0"
                    " && quantity(self).compareTo(quantity('1Ti')) <= 0",
                    "message": "spec.ledger.rotation.size must be from 1Mi to 1Ti",
                }
            )
        ),
    ] = "1Gi"
    """Of the records in a log, at most: the grain in which evidence can be moved away."""
    age_seconds: Annotated[int, Field(ge=60, le=31_622_400)] = 86_400
    """How long a log lasts at most, in seconds: a minute to 366 days."""


class SigningKeyRef(SecretKeyRef):
    """The Secret that holds a signing key."""

    key: Annotated[str, Field(min_length=1, max_length=253, pattern=SECRET_KEY)] = "signing-key"
    """Entry of the Secret."""


class ShredKeys(Section):
    """Keys of tenants that lie off the ledger's volume. Whoever destroys one makes what was said under it
    unopenable, in backups and snapshots of the volume too."""

    secret_ref: SecretRef | None = None
    """A Secret of your own with an entry for each tenant, named as the tenant: lines of 32 bytes in base64,
    the newest first. Absent: the operator makes one, `<gateway>-shred-keys`, and a key for each tenant that
    has none. It takes none away, and the Secret outlives the gateway."""


class Ledger(Section):
    """The record of every exchange."""

    durability: Durability = Durability.WRITTEN
    """Written: in the page cache before a byte leaves; survives kill -9. Synced: on disk; survives power
    loss."""
    checkpoint_interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 1
    """Seconds between signed checkpoints while records arrive."""
    rotation: Rotation = Rotation()
    """When a worker's log ends and its next one begins. A change rolls the workers."""
    payloads: Payloads | None = None
    """Whether requests and answers are stored, and how. Absent: only where a plan or a tenant says so. It
    rolls the workers only when the first may have any stored, or nobody any more."""
    volume: LedgerVolume = Volume()
    """Where the ledger is kept."""
    origin: Annotated[str | None, Field(min_length=1, max_length=128, pattern=_LEDGER_ORIGIN)] = None
    """Name of the ledger, with which every log's origin begins: a schema-less URL of your own, such as
    ledger.example.com/prod/llm, unlike that of every other ledger. The signing key has to bear it. Absent:
    `proofgate.dev/<namespace>/<gateway>`. Immutable."""
    signing_key_secret_ref: SigningKeyRef | None = None
    """Entry of a Secret with the Ed25519 key that signs checkpoints, as `proofgate keygen` writes it. Once
    set, it is immutable. Absent: the operator makes one, once, as `<gateway>-ledger`. It stays as long as the
    evidence does: with `retainPolicy: Retain`, or a claim that you brought, it outlives the gateway. One that
    is lost is not made anew (SigningKeyLost)."""
    shred_keys: ShredKeys | None = None
    """Salts that need a key of their tenant. Absent: salts are stored whole, and copies of the volume keep
    those that are erased. A change rolls the workers."""
