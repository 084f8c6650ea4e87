"""The auditor's key: whether it can be used, and whether it could speak for the ledger."""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import ledger_key
from proofgate_operator.build.ledger_key import LedgerKey
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.observed import Observed
from proofgate_operator.plan.problems import Fault

#: Whom a fault of the auditor's key costs.
OWNER = "spec.auditor"


def auditor_key(
    gateway: Gateway, seen: Observed, ledger: LedgerKey | None
) -> tuple[LedgerKey | None, list[Fault]]:
    """Return the auditor's key, and what is wrong with it; neither without an auditor.

    `ledger` is the key of the workers, None where that cannot be used. The auditor judges for itself; here it
    is told before a pod fails.
    """
    wanted = gateway.auditor
    if wanted is None:
        return None, []
    reference = wanted.signing_key_secret_ref
    named = f"Secret {reference.name}, named by {OWNER}.signingKeySecretRef"
    secret = seen.secrets.get(reference.name)
    if secret is None:
        return None, [Fault(OWNER, "SecretMissing", f"{named}, does not exist")]
    text = entry(secret, reference.key)
    if text is None:
        return None, [Fault(OWNER, "SecretInvalid", f"{named}, has no text under {reference.key}")]
    try:
        key = ledger_key.read(text)
    except ledger_key.InvalidSigningKey as error:
        return None, [Fault(OWNER, "SecretInvalid", f"{named}: {reference.key} is no signing key: {error}")]
    if ledger is not None and key.public == ledger.public:
        message = f"{named}: {reference.key} is the ledger's own key: make one that no worker holds"
        return None, [Fault(OWNER, "SecretInvalid", message)]
    if _below(key.name, gateway.ledger_name) or _below(gateway.ledger_name, key.name):
        message = (
            f"{named}: {reference.key} is named {key.name}, and the ledger {gateway.ledger_name}: neither may"
            " be the other or stand below it, as a key speaks for all names below its own"
        )
        return None, [Fault(OWNER, "SecretInvalid", message)]
    return key, []


def _below(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}/")
