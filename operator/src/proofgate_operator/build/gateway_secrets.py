"""Secrets of one gateway: the digests of its tenants' keys, the admin token, and generated signing keys.

None of them contains a tenant's key in clear text.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence

from proofgate_operator.api.access import ApiKey
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Manifest, child_manifest, names
from proofgate_operator.build.owners import WorkerShares
from proofgate_operator.build.tenant_keys import KeyDigest, keys_entry

SIGNING_KEY = "signing-key"
VERIFYING_KEY = "verifying-key"
ADMIN_TOKEN = "token"
#: Entry and worker's file of the key by which HAProxy authenticates to workers.
ROUTING_KEY_FILE = "routing.key"
#: Entry with the source of each key: its item, Secret and Secret entry.
KEY_SOURCES = "sources.map"
#: Source of a key that does not come from a Secret.
NO_SOURCE = "-"
#: Maximum bytes of the Secret with names of keys: it can hold a mebibyte, and an additional tenant or key
#: must still fit.
_MAX_BYTES_WITH_NAMES = 960 * 1024
#: Characters of a key's source id: sixty bits are enough, because a tenant has few keys.
_SOURCE_ID_LENGTH = 10


def encode_data(entries: Mapping[str, str]) -> dict[str, str]:
    """Return a Secret's `data`. `stringData` is write-only, so drift in it could not be detected."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in entries.items()}


def tenants_secret(
    gateway: Gateway,
    keys: Mapping[str, Sequence[KeyDigest]],
    maps: Mapping[str, str],
    shares: WorkerShares,
    routing_key: str,
) -> Manifest:
    """Return the Secret of key digests: one entry per tenant for the workers, HAProxy's `maps`, and the key
    by which HAProxy authenticates to workers.

    If the names of keys do not fit next to their digests, they are left out; keys work without names. The
    annotations contain the shares from which the maps are built. The operator reads the source of each digest
    again when it cannot read the source Secret.
    """
    head = child_manifest(gateway, "v1", "Secret", names(gateway).tenants, "worker")
    head["metadata"]["annotations"] = shares.annotations
    rest = {**maps, ROUTING_KEY_FILE: routing_key, KEY_SOURCES: _sources(gateway, keys)}
    made = {**_key_files(keys, named=True), **rest}
    if sum(map(len, made.values())) > _MAX_BYTES_WITH_NAMES:
        made = {**_key_files(keys, named=False), **rest}
    return {**head, "type": "Opaque", "data": encode_data(made)}


def _key_files(keys: Mapping[str, Sequence[KeyDigest]], *, named: bool) -> dict[str, str]:
    """Return the file of each tenant's keys."""
    return {
        keys_entry(tenant): "".join(
            f"{key.named_line if named else key.line}\n" for key in sorted(found, key=lambda key: key.digest)
        )
        for tenant, found in keys.items()
    }


def _sources(gateway: Gateway, keys: Mapping[str, Sequence[KeyDigest]]) -> str:
    """Return a line for each tenant: its name, and the sources of its keys in the order of its file."""
    lines = []
    for tenant in gateway.spec.tenants:
        listed = {item.name: item for item in tenant.api_keys or ()}
        ordered = sorted(keys.get(tenant.name, ()), key=lambda key: key.digest)
        sources = [key_source_id(listed[key.name]) if key.name in listed else NO_SOURCE for key in ordered]
        if any(source != NO_SOURCE for source in sources):
            lines.append(f"{tenant.name} {' '.join(sources)}\n")
    return "".join(sorted(lines))


def key_source_id(item: ApiKey) -> str:
    """Return a short identifier of a tenant's item that names a Secret. It is short because one Secret of a
    mebibyte contains thousands."""
    reference = item.secret_ref
    if reference is None:
        return NO_SOURCE
    whole = hashlib.sha256(f"{item.name}\n{reference.name}\n{reference.key}".encode()).digest()
    return base64.urlsafe_b64encode(whole).decode()[:_SOURCE_ID_LENGTH]


def routing_key(admin_token: str) -> str:
    """Return the key by which HAProxy authenticates to workers: 128 bits, in hexadecimal.

    It is derived from the admin token, so a deleted Secret of maps is recreated with the same key. The key
    reveals nothing about the token.
    """
    return hmac.new(admin_token.encode(), b"proofgate routing key", hashlib.sha256).hexdigest()[:32]


def auditor_token(admin_token: str) -> str:
    """Return the token by which an auditor reads workers' volumes: 256 bits, in hexadecimal.

    Workers derive it from their admin token in the same way.
    """
    return hmac.new(admin_token.encode(), b"proofgate ledger reading", hashlib.sha256).hexdigest()


def admin_secret(gateway: Gateway, token: str) -> Manifest:
    """Return the Secret with the token for the workers' admin port."""
    head = child_manifest(gateway, "v1", "Secret", names(gateway).admin, "worker")
    return {**head, "type": "Opaque", "data": encode_data({ADMIN_TOKEN: token})}


def ledger_secret_base(gateway: Gateway, *, owned: bool) -> Manifest:
    """Return the metadata of the Secret of a generated signing key; if `owned`, it is deleted with the
    gateway."""
    return child_manifest(gateway, "v1", "Secret", names(gateway).ledger, "worker", owned=owned)


def export_key_name(gateway: Gateway) -> str:
    """Return the name of a generated export key, which is no path above or below any gateway's ledger
    name."""
    return f"exports.proofgate.dev/{gateway.namespace}/{gateway.name}"


def export_key_secret(gateway: Gateway, signing_key: str, verifying_key: str) -> Manifest:
    """Return the Secret of a generated export key, in the text forms of `ledger_key`."""
    head = child_manifest(gateway, "v1", "Secret", names(gateway).export_key, "auditor")
    entries = {SIGNING_KEY: signing_key, VERIFYING_KEY: verifying_key}
    return {**head, "type": "Opaque", "data": encode_data(entries)}


def ledger_secret(gateway: Gateway, signing_key: str, verifying_key: str) -> Manifest:
    """Return the Secret of a generated signing key, in the text forms of `ledger_key`.

    It has no owner yet: a later apply of `ledger_secret_base` sets the owner and can remove it again.
    """
    head = ledger_secret_base(gateway, owned=False)
    entries = {SIGNING_KEY: signing_key, VERIFYING_KEY: verifying_key}
    return {**head, "type": "Opaque", "data": encode_data(entries)}
