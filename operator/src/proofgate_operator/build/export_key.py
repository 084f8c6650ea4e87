"""The key that signs readers' exports: the auditor's options for it, and its file."""

from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.index import Index
from proofgate_operator.api.ledger import SigningKeyRef
from proofgate_operator.build import egress_destinations
from proofgate_operator.build.gateway_secrets import SIGNING_KEY
from proofgate_operator.build.naming import Manifest, names

_FOLDER = "/etc/auditor-export-key"
_VOLUME = "export-key"
_PRIVATE_MODE = 0o440


def reference(gateway: Gateway, index: Index | None) -> SigningKeyRef | None:
    """Return the reference to the key; None if exports are not signed."""
    if index is None or index.export_key is None:
        return None
    return index.export_key.secret_ref or SigningKeyRef(name=names(gateway).export_key)


def is_generated(index: Index | None) -> bool:
    """Return whether the operator generates the key."""
    return index is not None and index.export_key is not None and index.export_key.secret_ref is None


def options(index: Index) -> Iterator[str]:
    """Yield the arguments of the auditor's command."""
    if index.export_key is not None:
        yield from ("--export-key", f"{_FOLDER}/{SIGNING_KEY}")


def mounts(index: Index | None) -> list[Manifest]:
    """Return the mount of the key file; empty without a key."""
    return (
        [egress_destinations.mount(_VOLUME, _FOLDER)]
        if index is not None and index.export_key is not None
        else []
    )


def volumes(gateway: Gateway, index: Index | None) -> list[Manifest]:
    """Return the volume of the key file; empty without a key."""
    key = reference(gateway, index)
    if key is None:
        return []
    items = [{"key": key.key, "path": SIGNING_KEY}]
    secret = {"secretName": key.name, "defaultMode": _PRIVATE_MODE, "items": items}
    return [{"name": _VOLUME, "secret": secret}]
