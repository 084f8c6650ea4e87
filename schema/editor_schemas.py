"""Writes the JSON schemas that editors complete and check with: of gateway.yaml and of a GovernanceGateway.

python schema/editor_schemas.py           # writes gateway.schema.json and governancegateway.schema.json
python schema/editor_schemas.py --check   # exits with 1 when they are stale

Both are made of the models. They say less than the gateway and an API server: what needs a look at two fields
is theirs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from proofgate.config.settings import Settings
from proofgate_operator.api import API_VERSION, KIND
from proofgate_operator.api.crd import crd

FOLDER = Path(__file__).resolve().parent
DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def main() -> int:
    """Writes or checks the files; returns the exit code."""
    made = {"gateway.schema.json": gateway_file(), "governancegateway.schema.json": manifest()}
    stale = False
    for name, schema in made.items():
        path, text = FOLDER / name, json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.name} is stale: run python schema/editor_schemas.py", file=sys.stderr)
            stale = True
    return int(stale)


def gateway_file() -> Schema:
    """The schema of a worker's file."""
    found: Schema = plain(Settings.model_json_schema(by_alias=True))
    # Of type VertexAI it follows from the location.
    found["$defs"]["Provider"]["required"].remove("baseURL")
    return {"$schema": DRAFT, "title": "Proofgate: gateway.yaml", **found}


def manifest() -> Schema:
    """The schema of a GovernanceGateway, as somebody writes one."""
    spec = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return {
        "$schema": DRAFT,
        "title": f"Proofgate: {KIND}",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "metadata": {"type": "object"},
            "spec": closed(spec),
        },
    }


def plain(node: Any) -> Any:
    """A node without what only a CRD or a generator reads, each description on one line."""
    if isinstance(node, list):
        return [plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            found[key] = {name: plain(one) for name, one in value.items()}
        elif key == "description":
            found[key] = " ".join(value.split())
        elif not key.startswith("x-") and not (key == "title" and isinstance(value, str)):
            found[key] = plain(value)
    return found


def closed(node: Any) -> Any:
    """A node of a CRD, with objects that have no other fields, as `kubectl apply` refuses them."""
    if isinstance(node, list):
        return [closed(one) for one in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for key, value in node.items():
        if key == "properties":
            found[key] = {name: closed(one) for name, one in value.items()}
        elif not key.startswith("x-"):
            found[key] = closed(value)
    if "properties" in found and not node.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return found


if __name__ == "__main__":
    sys.exit(main())
