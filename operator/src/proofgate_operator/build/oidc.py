"""How readers sign in with an OpenID provider: the file of `proofgate audit run --oidc`, and its secrets.

The file has no secret. It is an annotation of the pod, so that a change of it replaces the pod, which reads
it only at its start. The client's secret is mounted from the Secret that the spec names.
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
#: What the file and the manifest spell alike.
_SHARED_FIELDS = frozenset(field.alias for field in proofgate_schema.oidc.Oidc.model_fields.values())


def document(oidc: Oidc) -> str:
    """Return the text of the file. The order of its groups counts."""
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
    """Return what the pod's template says of it."""
    oidc = _oidc_settings(index)
    return {OIDC_ANNOTATION: document(oidc)} if oidc is not None else {}


def options(index: Index) -> Iterator[str]:
    """Yield the arguments of the command."""
    if index.oidc is not None:
        yield from ("--oidc", f"{_FOLDER}/{_FILE}")


def mounts(index: Index | None) -> list[Manifest]:
    """Return where the files are mounted."""
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
    """Return the rule of the network policy that lets the auditor reach the provider."""
    oidc = _oidc_settings(index)
    return (
        [egress_destinations.egress_rule(urlsplit(oidc.issuer).port or _HTTPS, oidc.egress)]
        if oidc is not None
        else []
    )
