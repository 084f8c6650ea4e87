"""The readers of the auditor's index: whether what the spec names can be used."""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import readers
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.audit_key import OWNER
from proofgate_operator.plan.observed import Observed
from proofgate_operator.plan.problems import Fault


def index_readers(gateway: Gateway, seen: Observed) -> tuple[str | None, list[Fault]]:
    """Return the file of readers, and what is wrong with what the spec names.

    No file (None) while something is, and where nobody may read: then what an auditor has already stays. An
    empty one where people sign in with an OpenID provider alone.
    """
    index = gateway.auditor.wanted_index if gateway.auditor else None
    reference = index.readers_secret_ref if index else None
    if reference is None:
        return ("{}" if index is not None and index.oidc is not None else None), []
    named = f"Secret {reference.name}, named by {OWNER}.index.readersSecretRef"
    secret = seen.secrets.get(reference.name)
    if secret is None:
        return None, [Fault(OWNER, "SecretMissing", f"{named}, does not exist")]
    text = entry(secret, reference.key)
    if text is None:
        return None, [Fault(OWNER, "SecretInvalid", f"{named}, has no text under {reference.key}")]
    try:
        readers.check(text)
    except readers.InvalidReaders as error:
        return None, [Fault(OWNER, "ReadersInvalid", f"{named}: {reference.key}: {error}")]
    return text, []
