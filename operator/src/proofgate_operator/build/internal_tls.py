"""TLS between HAProxy and the workers: names, files and the Secret of certificates."""

from collections.abc import Mapping
from dataclasses import dataclass

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.internal_tls import InternalTlsMode
from proofgate_operator.build.gateway_secrets import encode_data
from proofgate_operator.build.naming import Manifest, child_manifest, names

#: Name of a pod's volume, and of the folder of its files.
VOLUME = "internal-tls"
#: Files that each side reads in its folder. HAProxy finds a certificate's key next to it.
CHAIN_FILE, KEY_FILE, AUTHORITIES_FILE = "tls.pem", "tls.pem.key", "ca.pem"
#: Entries of the operator's Secret with the authorities that each side trusts.
AUTHORITIES = "ca.crt"


@dataclass(frozen=True)
class TlsEndpoint:
    """One end of the connections: its DNS name, and the Secret entries with its certificate."""

    name: str
    host: str
    secret: str
    chain: str
    key: str


def _endpoint(gateway: Gateway, name: str, host: str, secret: str | None) -> TlsEndpoint:
    full = f"{host}.{gateway.namespace}.svc"
    if secret is not None:
        return TlsEndpoint(name, full, secret, "tls.crt", "tls.key")
    return TlsEndpoint(name, full, names(gateway).internal_tls, f"{name}.crt", f"{name}.key")


def worker_endpoint(gateway: Gateway) -> TlsEndpoint:
    """Return the workers' end. All workers have the same certificate, as they share other keys too."""
    wanted = gateway.spec.internal_tls
    secret = wanted.worker_secret_ref
    return _endpoint(gateway, "worker", names(gateway).workers, secret.name if secret else None)


def haproxy_endpoint(gateway: Gateway) -> TlsEndpoint:
    """Return HAProxy's end."""
    wanted = gateway.spec.internal_tls
    secret = wanted.haproxy_secret_ref
    return _endpoint(gateway, "haproxy", names(gateway).haproxy, secret.name if secret else None)


def is_operator_managed(gateway: Gateway) -> bool:
    """Return whether the operator creates the certificates."""
    return gateway.spec.internal_tls.mode is InternalTlsMode.OPERATOR


def volume(side: TlsEndpoint) -> Manifest:
    """Return the volume of the files that one side reads, without keys of authorities or of the other
    side."""
    items = [
        {"key": side.chain, "path": CHAIN_FILE},
        {"key": side.key, "path": KEY_FILE},
        {"key": AUTHORITIES, "path": AUTHORITIES_FILE},
    ]
    return {"name": VOLUME, "secret": {"secretName": side.secret, "defaultMode": 0o440, "items": items}}


def secret(gateway: Gateway, entries: Mapping[str, str]) -> Manifest:
    """Return the Secret of the certificates that the operator creates."""
    head = child_manifest(gateway, "v1", "Secret", names(gateway).internal_tls, "worker")
    return {**head, "type": "Opaque", "data": encode_data(entries)}
