"""Checks the signing keys of the auditor, the retention job and exports: whether they are valid, and whether
one could sign in the name of the ledger or of another key."""

from collections.abc import Iterable
from dataclasses import replace

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.ledger import SigningKeyRef
from proofgate_operator.build import ledger_key
from proofgate_operator.build.ledger_key import ExternalSigningKey, LedgerKey
from proofgate_operator.build.naming import names
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.ownership import Ownership, classify, is_owned_by_predecessor
from proofgate_operator.plan.problems import Fault

#: The owner of faults of the auditor's key.
AUDITOR_FIELD = "spec.auditor"
_EXPORT_KEY = "index.exportKey"
#: The owner of faults of the retention key.
RETENTION_FIELD = "spec.keeping"


def auditor_key(
    gateway: Gateway, seen: ObservedState, ledger: LedgerKey | None
) -> tuple[LedgerKey | None, list[Fault]]:
    """Return the auditor's key and its faults; None and no faults without an auditor.

    `ledger` is the workers' key, None if it is invalid. The auditor checks its key itself; this check reports
    the fault before a pod fails.
    """
    wanted = gateway.enabled_auditor
    if wanted is None:
        return None, []
    return _key(gateway, seen, ledger, AUDITOR_FIELD, wanted.signing_key_secret_ref)


def retention_key(
    gateway: Gateway, seen: ObservedState, ledger: LedgerKey | None, auditor: LedgerKey | None
) -> tuple[LedgerKey | None, list[Fault]]:
    """Return the retention key and its faults; None and no faults without a retention job.

    `ledger` and `auditor` are the other keys, None if they are invalid.
    """
    wanted = gateway.spec.keeping
    if wanted is None:
        return None, []
    key, faults = _key(gateway, seen, ledger, RETENTION_FIELD, wanted.signing_key_secret_ref)
    if key is None:
        return None, faults
    where = f"Secret {wanted.signing_key_secret_ref.name}, named by {RETENTION_FIELD}.signingKeySecretRef"
    if isinstance(key, ExternalSigningKey):
        message = (
            f"{where}: the entry names a process that holds the key, but the retention job cannot use such a "
            "process"
        )
        return None, [Fault(RETENTION_FIELD, "SecretInvalid", message)]
    if auditor is not None and key.public == auditor.public:
        message = f"{where}: the key is also the auditor's key: create a separate key"
        return None, [Fault(RETENTION_FIELD, "SecretInvalid", message)]
    if auditor is not None and _related(key.name, auditor.name):
        message = (
            f"{where}: the key is named {key.name}, and the auditor's key is named {auditor.name}: the names "
            "must differ, and neither may be a path below the other"
        )
        return None, [Fault(RETENTION_FIELD, "SecretInvalid", message)]
    told = gateway.spec.auditor.keeping_key if gateway.spec.auditor else None
    if told is not None and told not in (key.verifying_text, *key.former_keys):
        message = f"spec.auditor.keepingKey is not the retention key, {key.verifying_text}: remove the field"
        return None, [Fault(RETENTION_FIELD, "KeepingKeyDiffers", message)]
    return key, []


def export_key(
    gateway: Gateway, seen: ObservedState, ledger: LedgerKey | None, others: Iterable[LedgerKey | None]
) -> tuple[LedgerKey | None, list[Fault]]:
    """Return the key that signs exports and its faults; None and no faults if exports are not signed, or
    while the operator still has to create the key.

    `ledger` is the workers' key, and `others` are the keys of the auditor and the retention job; None for an
    invalid key.
    """
    index = gateway.enabled_auditor.enabled_index if gateway.enabled_auditor else None
    own = names(gateway).export_key
    field = f"{_EXPORT_KEY}.secretRef"
    if index is None or index.export_key is None:
        return None, []
    reference = index.export_key.secret_ref
    if reference is None:
        made = seen.child("Secret", own)
        if (
            made is None
            or classify(gateway, made) is not Ownership.OURS
            or is_owned_by_predecessor(gateway, made)
        ):
            return None, []
        reference, field = SigningKeyRef(name=own), _EXPORT_KEY
        seen = replace(seen, secrets={own: made})
    key, faults = _key(gateway, seen, ledger, AUDITOR_FIELD, reference, field)
    if key is None:
        return None, faults
    where = f"Secret {reference.name}, named by {AUDITOR_FIELD}.{field}"
    if isinstance(key, ExternalSigningKey):
        message = f"{where}: the entry names a process that holds the key, but exports need the key itself"
        return None, [Fault(AUDITOR_FIELD, "SecretInvalid", message)]
    for other in filter(None, others):
        if key.public == other.public:
            message = (
                f"{where}: the key is also another key of this gateway, which is named {other.name}: create "
                "a separate key"
            )
            return None, [Fault(AUDITOR_FIELD, "SecretInvalid", message)]
        if _related(key.name, other.name):
            message = (
                f"{where}: the key is named {key.name}, and another key of this gateway is named "
                f"{other.name}: the names must differ, and neither may be a path below the other"
            )
            return None, [Fault(AUDITOR_FIELD, "SecretInvalid", message)]
    return key, []


def _key(
    gateway: Gateway,
    seen: ObservedState,
    ledger: LedgerKey | None,
    owner: str,
    reference: SigningKeyRef,
    field: str = "signingKeySecretRef",
) -> tuple[LedgerKey | None, list[Fault]]:
    named = f"Secret {reference.name}, named by {owner}.{field}"
    secret = seen.secrets.get(reference.name)
    if secret is None:
        return None, [Fault(owner, "SecretMissing", f"{named}, does not exist")]
    text = entry(secret, reference.key)
    if text is None:
        return None, [Fault(owner, "SecretInvalid", f"{named}, has no text under {reference.key}")]
    try:
        key = ledger_key.read(text)
    except ledger_key.InvalidSigningKey as error:
        return None, [
            Fault(owner, "SecretInvalid", f"{named}: {reference.key} is not a signing key: {error}")
        ]
    if ledger is not None and key.public == ledger.public:
        message = f"{named}: {reference.key} is the ledger's own key: create a key that no worker has"
        return None, [Fault(owner, "SecretInvalid", message)]
    if _related(key.name, gateway.ledger_name):
        message = (
            f"{named}: {reference.key} is named {key.name}, and the ledger is named {gateway.ledger_name}: "
            "the names must differ, and neither may be a path below the other, because a key is valid for "
            "all names "
            "below its own"
        )
        return None, [Fault(owner, "SecretInvalid", message)]
    return key, []


def _related(name: str, other: str) -> bool:
    """Return whether a key of one name would be valid for the other name."""
    return _below(name, other) or _below(other, name)


def _below(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}/")
