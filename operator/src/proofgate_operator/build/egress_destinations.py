"""Volumes and network policy rules that the auditor's mirrors and sinks both need."""

from collections.abc import Sequence
from typing import Protocol

from proofgate_operator.api.fields import ConfigMapKeyRef, SecretKeyRef
from proofgate_operator.api.upstream import CA_FILE
from proofgate_operator.build.naming import Manifest

_PRIVATE_MODE = 0o440


class HasCustomCa(Protocol):
    """A destination that may have its own certificate authorities."""

    @property
    def ca_secret_ref(self) -> SecretKeyRef | None:
        """The Secret entry with the authorities; None if they are not in a Secret."""

    @property
    def ca_config_map_ref(self) -> ConfigMapKeyRef | None:
        """The ConfigMap entry with the authorities; None if they are not in a ConfigMap."""


class _HasAllowedRanges(Protocol):
    @property
    def allow(self) -> Sequence[str]: ...


def has_custom_ca(of: HasCustomCa) -> bool:
    """Return whether the destination has its own authorities instead of the system's."""
    return bool(of.ca_secret_ref or of.ca_config_map_ref)


def volume(name: str, of: HasCustomCa, *sources: Manifest) -> Manifest:
    """Return a volume of these sources and the authorities. They are optional: the auditor starts without
    them, and reports what is missing."""
    found = list(sources)
    for kind, reference in (("secret", of.ca_secret_ref), ("configMap", of.ca_config_map_ref)):
        if reference is not None:
            items = [{"key": reference.key, "path": CA_FILE}]
            found.append({kind: {"name": reference.name, "items": items, "optional": True}})
    return {"name": name, "projected": {"defaultMode": _PRIVATE_MODE, "sources": found}}


def mount(name: str, folder: str) -> Manifest:
    """Return the mount of a volume."""
    return {"name": name, "mountPath": folder, "readOnly": True}


def egress_rule(port: int, ranges: _HasAllowedRanges | None) -> Manifest:
    """Return the network policy rule that lets the auditor connect to the destination."""
    found: Manifest = {"ports": [{"port": port, "protocol": "TCP"}]}
    if ranges is not None:
        found["to"] = [{"ipBlock": {"cidr": cidr}} for cidr in ranges.allow]
    return found
