"""The section `ledger`: how exchanges are recorded. A change of most fields replaces the workers one by
one."""

from typing import Annotated

import proofgate_schema.ledger
from pydantic import Field

from proofgate_operator.api.fields import SECRET_KEY, SecretKeyRef, SecretRef, Section
from proofgate_operator.api.volume import LedgerVolume, Volume

#: A URL without a scheme. It is a line of every checkpoint and the name of its signature, so it contains no
#: space and no `+` (C2SP signed-note).
_LEDGER_ORIGIN = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)*$"


class SigningKeyRef(SecretKeyRef):
    """An entry of a Secret that contains a signing key."""

    key: Annotated[str, Field(min_length=1, max_length=253, pattern=SECRET_KEY)] = "signing-key"
    """Key of the entry in the Secret."""


class ShredKeys(Section):
    """Keys of tenants that are stored outside the ledger's volume. When a key is destroyed, the data that was
    encrypted with it can no longer be opened, not even in backups and snapshots of the volume."""

    secret_ref: SecretRef | None = None
    """Your own Secret with an entry for each tenant, under the tenant's name. Each line of an entry is a key:
    32 bytes in base64. The newest key comes first. Absent: the operator creates the Secret
    `<gateway>-shred-keys`, and a key for each tenant that has none. The operator never removes a key, and the
    Secret outlives the gateway."""


class Ledger(proofgate_schema.ledger.Ledger):
    """The record of every exchange."""

    volume: LedgerVolume = Volume()
    """Volume of the ledger."""
    origin: Annotated[str | None, Field(min_length=1, max_length=128, pattern=_LEDGER_ORIGIN)] = None
    """Name of the ledger and prefix of every log's origin: a URL of your own without a scheme, such as
    ledger.example.com/prod/llm. No other ledger may have the same name. The signing key must have this name.
    Absent: `proofgate.dev/<namespace>/<gateway>`. Immutable."""
    signing_key_secret_ref: SigningKeyRef | None = None
    """Entry of a Secret with the Ed25519 key that signs checkpoints, as `proofgate keys generate` writes it.
    Immutable once set. Absent: the operator creates a key once, as `<gateway>-ledger`. The key is kept as
    long as the evidence: with `retainPolicy: Retain`, or with your own claim, the key outlives the gateway. A
    lost key is not replaced (SigningKeyLost)."""
    shred_keys: ShredKeys | None = None
    """Keys from which salts are computed, one or more for each tenant. The volume then stores only half of
    each salt. Absent: the volume stores complete salts, and copies of the volume keep erased salts. A
    change rolls the workers."""
