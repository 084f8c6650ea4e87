"""The section `internalTLS`: TLS between HAProxy and the workers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from proofgate_operator.api.fields import SecretRef, Section


class InternalTlsMode(StrEnum):
    """The source of the certificates of HAProxy and the workers."""

    NONE = "None"
    OPERATOR = "Operator"
    SECRET = "Secret"


class InternalTls(Section):
    """Mutual TLS 1.3 between HAProxy and the workers."""

    mode: InternalTlsMode
    """Source of the certificates. Operator: the operator creates a CA and certificates for this gateway
    alone, and renews them. Secret: certificates from Secrets, for example of cert-manager Certificates. None:
    connections are not encrypted. A change replaces the workers and HAProxy without closing connections.
    During a change between Operator and Secret, connections are temporarily not encrypted."""
    worker_secret_ref: SecretRef | None = None
    """With mode Secret: the workers' server certificate, as `tls.crt` and `tls.key`, for the DNS name
    `<gateway>-workers.<namespace>.svc`. `ca.crt` contains the CAs of HAProxy's certificate."""
    haproxy_secret_ref: SecretRef | None = None
    """With mode Secret: HAProxy's client certificate, as `tls.crt` and `tls.key`, for the DNS name
    `<gateway>-haproxy.<namespace>.svc`. `ca.crt` contains the CAs of the workers' certificates."""


INTERNAL_TLS_RULES: list[dict[str, Any]] = [
    {
        "rule": "self.mode == 'Secret' ? has(self.workerSecretRef) && has(self.haproxySecretRef)"
        " : !has(self.workerSecretRef) && !has(self.haproxySecretRef)",
        "message": "spec.internalTLS: workerSecretRef and haproxySecretRef are required with mode Secret, "
        "and not allowed with any other mode",
    }
]


@dataclass(frozen=True)
class TlsTransition:
    """The progress of the change of the connections from HAProxy to the workers to TLS, or back.

    The steps follow each other, so that no connection fails: new workers mount the certificate, workers
    accept TLS, HAProxy uses TLS, and workers refuse unencrypted connections. `worker_volume` and
    `haproxy_volume` are the volumes with the certificates still in use, if the spec wants none or others.
    """

    certificate_mounted: bool
    workers_serve_tls: bool
    haproxy_uses_tls: bool
    tls_only: bool
    worker_volume: dict[str, Any] | None = None
    haproxy_volume: dict[str, Any] | None = None


#: All connections are unencrypted.
PLAINTEXT = TlsTransition(
    certificate_mounted=False, workers_serve_tls=False, haproxy_uses_tls=False, tls_only=False
)
#: All connections are encrypted.
TLS_ONLY = TlsTransition(
    certificate_mounted=True, workers_serve_tls=True, haproxy_uses_tls=True, tls_only=True
)
