"""The part of the spec that says how exchanges are recorded. A change replaces the workers one by one."""

from typing import Annotated

import proofgate_schema.ledger
from pydantic import Field

from proofgate_operator.api.fields import SECRET_KEY, SecretKeyRef, SecretRef, Section
from proofgate_operator.api.volume import LedgerVolume, Volume

#: A schema-less URL. It is a line of every checkpoint and names its signature: no space and no `+` (C2SP
#: signed-note).
_LEDGER_ORIGIN = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)*$"


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


class Ledger(proofgate_schema.ledger.Ledger):
    """The record of every exchange."""

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
