"""The certificate that HAProxy presents, and its faults: it is invalid, has expired or expires soon."""

from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.certificates import Lifetime, lifetime, presented_certificate_fault
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Fault
from proofgate_operator.plan.rfc3339 import time_of

#: Reasons for a certificate that has expired or expires soon.
CERTIFICATE_EXPIRED = "CertificateExpired"
CERTIFICATE_EXPIRES = "CertificateExpires"


def presented_certificate(gateway: Gateway, seen: ObservedState) -> tuple[str, list[Fault]]:
    """Return the chain that HAProxy presents, and the faults of the chain or its key."""
    tls = gateway.spec.load_balancer.tls
    if tls is None:
        return "", []
    owner = "spec.loadBalancer.tls"
    name = tls.certificate_secret_ref.name
    where = f"Secret {name}, named by {owner}.certificateSecretRef,"
    secret = seen.secrets.get(name)
    if secret is None:
        return "", [Fault(owner, "SecretMissing", f"{where} does not exist")]
    missing = [name for name in ("tls.crt", "tls.key") if not entry(secret, name)]
    if missing:
        return "", [Fault(owner, "SecretInvalid", f"{where} has no text under {' and '.join(missing)}")]
    chain, key = entry(secret, "tls.crt") or "", entry(secret, "tls.key") or ""
    fault = presented_certificate_fault(chain, key)
    if fault:
        return chain, [Fault(owner, "CertificateInvalid", f"{where} {fault}")]
    return chain, list(_life_faults(owner, where, lifetime(chain), seen.now))


def _life_faults(owner: str, where: str, life: Lifetime, now: float) -> Iterator[Fault]:
    """Yield a fault if a certificate has expired or expires soon."""
    if life.expires_at <= now:
        message = f"{where} has a certificate that expired at {time_of(life.expires_at)}: clients refuse it"
        yield Fault(owner, CERTIFICATE_EXPIRED, message)
    elif life.warn_at <= now:
        message = f"{where} has a certificate that expires at {time_of(life.expires_at)}: renew it"
        yield Fault(owner, CERTIFICATE_EXPIRES, message)
