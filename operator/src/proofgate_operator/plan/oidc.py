"""Checks the OpenID provider for sign-in: the spec's section and the Secrets that it names."""

import re
from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.oidc import Oidc
from proofgate_operator.plan.addresses import address_fault
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.audit_key import AUDITOR_FIELD
from proofgate_operator.plan.certificates import authorities_fault
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Fault

_FIELD = f"{AUDITOR_FIELD}.index.oidc"


def client_secret(gateway: Gateway, seen: ObservedState) -> tuple[str, list[Fault]]:
    """Return the client secret, which the auditor reads only at its start, and the faults; empty without a
    provider."""
    index = gateway.enabled_auditor.enabled_index if gateway.enabled_auditor else None
    oidc = index.oidc if index else None
    if oidc is None:
        return "", []
    faults = [*_spec_faults(oidc)]
    texts: dict[str, str] = {}
    for field, reference in oidc.secrets():
        named = f"Secret {reference.name}, named by {_FIELD}.{field}"
        secret = seen.secrets.get(reference.name)
        if secret is None:
            faults.append(Fault(AUDITOR_FIELD, "SecretMissing", f"{named}, does not exist"))
        elif not (text := (entry(secret, reference.key) or "").strip()):
            faults.append(
                Fault(AUDITOR_FIELD, "SecretInvalid", f"{named}, has no text under {reference.key}")
            )
        elif field == "caSecretRef":
            if fault := authorities_fault(text):
                faults.append(
                    Fault(AUDITOR_FIELD, "CertificateInvalid", f"{named}, {fault} under {reference.key}")
                )
        elif not re.fullmatch(r"[ -~]{1,4096}", text):
            message = f"{reference.key} is not one line of at most 4096 characters of printable ASCII"
            faults.append(Fault(AUDITOR_FIELD, "SecretInvalid", f"{named}: {message}"))
        else:
            texts[field] = text
    return texts.get("clientSecretRef", ""), faults


def _spec_faults(oidc: Oidc) -> Iterator[Fault]:
    """Yield the faults of the spec that the patterns of the schema cannot express."""
    for field, url in (("issuer", oidc.issuer), ("redirectUri", oidc.redirect_uri)):
        if fault := address_fault(url):
            yield Fault(AUDITOR_FIELD, "SpecInvalid", f"{_FIELD}.{field}: {fault}")
