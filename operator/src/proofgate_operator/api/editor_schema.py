"""The JSON schema of a GovernanceGateway for editors: `python -m proofgate_operator.api.editor_schema`.

It is less strict than the API server: rules over several fields exist only in the CRD.
"""

import json
from typing import Any

from proofgate_operator.api import API_VERSION, KIND
from proofgate_operator.api.crd import crd


def manifest_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a manifest as users write it."""
    spec = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Proofgate: {KIND}",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "metadata": {"type": "object"},
            "spec": _disallow_unknown_fields(spec),
        },
    }


def _disallow_unknown_fields(node: Any) -> Any:
    """Return a CRD node whose objects allow no unknown fields, like `kubectl apply`."""
    if isinstance(node, list):
        return [_disallow_unknown_fields(one) for one in node]
    if not isinstance(node, dict):
        return node
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            found[key] = {name: _disallow_unknown_fields(one) for name, one in value.items()}
        elif not key.startswith("x-"):
            found[key] = _disallow_unknown_fields(value)
    if "properties" in found and not node.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return found


if __name__ == "__main__":
    print(json.dumps(manifest_schema(), indent=1, ensure_ascii=False))
