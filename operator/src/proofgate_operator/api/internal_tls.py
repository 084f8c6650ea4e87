"""The part of the spec that says how HAProxy and the workers know each other."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from proofgate_operator.api.fields import SecretRef, Section


class InternalTlsMode(StrEnum):
    """Where the certificates of HAProxy and the workers come from."""

    NONE = "None"
    OPERATOR = "Operator"
    SECRET = "Secret"


class InternalTls(Section):
    """TLS 1.3 between HAProxy and the workers, in which each side shows a certificate."""

    mode: InternalTlsMode
    """Operator: the operator makes an authority and certificates for this gateway alone, and renews them.
    Secret: they stand in Secrets, for example those of cert-manager Certificates. None: connections are in
    clear. A change closes no connection; workers and HAProxy are replaced for it, and from one kind of
    certificate to the other connections are in clear for a while."""
    worker_secret_ref: SecretRef | None = None
    """With mode Secret: what workers show, as `tls.crt` and `tls.key`, for the DNS name
    `<gateway>-workers.<namespace>.svc` and for servers; in `ca.crt` the authorities of what HAProxy shows."""
    haproxy_secret_ref: SecretRef | None = None
    """With mode Secret: what HAProxy shows, as `tls.crt` and `tls.key`, for the DNS name
    `<gateway>-haproxy.<namespace>.svc` and for clients; in `ca.crt` the authorities of what workers show."""


INTERNAL_TLS_RULES: list[dict[str, Any]] = [
    {
        "rule": "self.mode == 'Secret' ? has(self.workerSecretRef) && has(self.haproxySecretRef)"
        " : !has(self.workerSecretRef) && !has(self.haproxySecretRef)",
        "message": "spec.internalTLS: mode Secret needs workerSecretRef and haproxySecretRef, and no other"
        " mode has them",
    }
]


@dataclass(frozen=True)
class Hop:
    """How far the way from HAProxy to the workers has come to be TLS, or clear again.

    `mounted`: new workers have the certificate. `served`: workers speak TLS. `spoken`: HAProxy does. `alone`:
    workers refuse connections in clear. Each waits for the one before, so that no connection fails.
    `worker_volume` and `haproxy_volume` are those with the certificates that are in use still, where the spec
    wants none, or others.
    """

    mounted: bool
    served: bool
    spoken: bool
    alone: bool
    worker_volume: dict[str, Any] | None = None
    haproxy_volume: dict[str, Any] | None = None


#: All connections are in clear.
CLEAR = Hop(mounted=False, served=False, spoken=False, alone=False)
#: None is.
SEALED = Hop(mounted=True, served=True, spoken=True, alone=True)
