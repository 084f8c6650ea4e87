"""Checks the readers of the auditor's index that the spec names."""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import readers
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.audit_key import AUDITOR_FIELD
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Fault


def index_readers(gateway: Gateway, seen: ObservedState) -> tuple[str | None, list[Fault]]:
    """Return the file of readers, and the faults of the named Secrets.

    There is no file (None) if there is a fault or no readers; an existing auditor then keeps its readers. The
    file is empty if people sign in only with an OpenID provider.
    """
    index = gateway.enabled_auditor.enabled_index if gateway.enabled_auditor else None
    reference = index.readers_secret_ref if index else None
    if reference is None:
        return ("{}" if index is not None and index.oidc is not None else None), []
    named = f"Secret {reference.name}, named by {AUDITOR_FIELD}.index.readersSecretRef"
    secret = seen.secrets.get(reference.name)
    if secret is None:
        return None, [Fault(AUDITOR_FIELD, "SecretMissing", f"{named}, does not exist")]
    text = entry(secret, reference.key)
    if text is None:
        return None, [Fault(AUDITOR_FIELD, "SecretInvalid", f"{named}, has no text under {reference.key}")]
    try:
        readers.check(text)
    except readers.InvalidReaders as error:
        return None, [Fault(AUDITOR_FIELD, "ReadersInvalid", f"{named}: {reference.key}: {error}")]
    return text, []
