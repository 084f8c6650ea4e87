"""What the auditor's mirrors and sinks need alike: files of their own, and a way to them."""

from collections.abc import Sequence
from typing import Protocol

from proofgate_operator.api.fields import ConfigMapKeyRef, SecretKeyRef
from proofgate_operator.api.upstream import CA_FILE
from proofgate_operator.build.naming import Manifest

_PRIVATE_MODE = 0o440


class HasCustomCa(Protocol):
    """What may have authorities of its own."""

    @property
    def ca_secret_ref(self) -> SecretKeyRef | None:
        """In a Secret."""

    @property
    def ca_config_map_ref(self) -> ConfigMapKeyRef | None:
        """In a ConfigMap."""


class _HasAllowedRanges(Protocol):
    @property
    def allow(self) -> Sequence[str]: ...


def has_custom_ca(of: HasCustomCa) -> bool:
    """Return whether it trusts others than the system does."""
    return bool(of.ca_secret_ref or of.ca_config_map_ref)


def volume(name: str, of: HasCustomCa, *sources: Manifest) -> Manifest:
    """Return a volume of these sources and the authorities. What is missing keeps no auditor from starting:
    it says so itself."""
    found = list(sources)
    for kind, reference in (("secret", of.ca_secret_ref), ("configMap", of.ca_config_map_ref)):
        if reference is not None:
            items = [{"key": reference.key, "path": CA_FILE}]
            found.append({kind: {"name": reference.name, "items": items, "optional": True}})
    return {"name": name, "projected": {"defaultMode": _PRIVATE_MODE, "sources": found}}


def mount(name: str, folder: str) -> Manifest:
    """Return where a volume is mounted."""
    return {"name": name, "mountPath": folder, "readOnly": True}


def egress_rule(port: int, ranges: _HasAllowedRanges | None) -> Manifest:
    """Return a rule of a network policy that lets the auditor out."""
    found: Manifest = {"ports": [{"port": port, "protocol": "TCP"}]}
    if ranges is not None:
        found["to"] = [{"ipBlock": {"cidr": cidr}} for cidr in ranges.allow]
    return found
