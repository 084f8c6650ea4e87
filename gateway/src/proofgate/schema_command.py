"""`proofgate gateway schema`: the JSON schema of a configuration file, for editors."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from proofgate.config.settings import Settings
from proofgate.exit_codes import EXIT_OK

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command."""
    command(
        show,
        "Editors with a YAML language server complete and check the file\nwith this schema. `validate` also "
        "checks files, references, and conditions on several fields.",
    )


def show(_: argparse.Namespace) -> int:
    """Prints the schema."""
    print(json.dumps(gateway_file_schema(), indent=1, ensure_ascii=False))
    return EXIT_OK


def gateway_file_schema() -> dict[str, Any]:
    """Returns the JSON schema (draft 2020-12) of a worker's configuration file."""
    found: dict[str, Any] = _strip_annotations(Settings.model_json_schema(by_alias=True))
    # For the type VertexAI, the URL follows from the location.
    found["$defs"]["Provider"]["required"].remove("baseURL")
    return {"$schema": DRAFT, "title": "Proofgate: gateway.yaml", **found}


def _strip_annotations(node: Any) -> Any:
    """Removes the parts of a node that only a CRD or a generator reads, and puts each description on one
    line."""
    if isinstance(node, list):
        return [_strip_annotations(one) for one in node]
    if not isinstance(node, dict):
        return node
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            found[key] = {name: _strip_annotations(one) for name, one in value.items()}
        elif key == "description":
            found[key] = " ".join(value.split())
        elif not key.startswith("x-") and not (key == "title" and isinstance(value, str)):
            found[key] = _strip_annotations(value)
    return found
