"""Sign-in of readers with an OpenID provider: the file for `proofgate audit run --oidc`, and its secrets.

The file contains no secret. It is an annotation of the pod template, so that a change replaces the pod, which
reads the file only at its start. The client's secret is mounted from the Secret that the spec names.
"""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import proofgate_schema.oidc

from proofgate_operator.api.index import Index
from proofgate_operator.api.oidc import Oidc
from proofgate_operator.api.upstream import CA_FILE
from proofgate_operator.build import egress_destinations
from proofgate_operator.build.naming import OIDC_ANNOTATION, Manifest

_FOLDER = "/etc/auditor-oidc"
_FILE = "oidc.json"
_CLIENT_SECRET = "client-secret"
_VOLUME = "oidc"
_HTTPS = 443
#: Fields with the same name in the file and the manifest.
_SHARED_FIELDS = frozenset(field.alias for field in proofgate_schema.oidc.Oidc.model_fields.values())


def document(oidc: Oidc) -> str:
    """Return the text of the file. The order of its groups is significant."""
    written = {name: value for name, value in oidc.to_document().items() if name in _SHARED_FIELDS}
    written["readers"] = {
        group.name: {"all": True} if group.all else {"tenant": group.tenant} for group in oidc.groups
    }
    if oidc.client_secret_ref is not None:
        written["clientSecretFile"] = _CLIENT_SECRET
    if egress_destinations.has_custom_ca(oidc):
        written["caFile"] = f"{_FOLDER}/{CA_FILE}"
    return json.dumps(written)


def _oidc_settings(index: Index | None) -> Oidc | None:
    return index.oidc if index is not None else None


def annotations(index: Index | None) -> dict[str, str]:
    """Return the annotations of the pod template."""
    oidc = _oidc_settings(index)
    return {OIDC_ANNOTATION: document(oidc)} if oidc is not None else {}


def options(index: Index) -> Iterator[str]:
    """Yield the arguments of the auditor's command."""
    if index.oidc is not None:
        yield from ("--oidc", f"{_FOLDER}/{_FILE}")


def mounts(index: Index | None) -> list[Manifest]:
    """Return the mounts of the files."""
    return [egress_destinations.mount(_VOLUME, _FOLDER)] if _oidc_settings(index) is not None else []


def volumes(index: Index | None) -> list[Manifest]:
    """Return the volume of the files."""
    oidc = _oidc_settings(index)
    if oidc is None:
        return []
    field = {"fieldPath": f"metadata.annotations['{OIDC_ANNOTATION}']"}
    sources: list[Manifest] = [{"downwardAPI": {"items": [{"path": _FILE, "fieldRef": field}]}}]
    if (reference := oidc.client_secret_ref) is not None:
        items = [{"key": reference.key, "path": _CLIENT_SECRET}]
        sources.append({"secret": {"name": reference.name, "items": items}})
    return [egress_destinations.volume(_VOLUME, oidc, *sources)]


def egress(index: Index | None) -> list[Manifest]:
    """Return the network policy rule that lets the auditor connect to the provider."""
    oidc = _oidc_settings(index)
    return (
        [egress_destinations.egress_rule(urlsplit(oidc.issuer).port or _HTTPS, oidc.egress)]
        if oidc is not None
        else []
    )
