"""Writes the generated rows of gateway/README.md's table of fields, from the sections in `proofgate_schema`.

python schema/readme_table.py           # updates the page
python schema/readme_table.py --check   # exits with 1 if a row is out of date

Rows of other sections are written by hand, but a missing row is added in generated form;
gateway/tests/test_config.py checks that no row is missing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import get_annotations
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from proofgate.config.settings import Settings
from pydantic import BaseModel

from proofgate_schema.section import Section

PAGE = Path(__file__).resolve().parents[1] / "gateway" / "README.md"
#: Modules of sections whose rows are generated. Other modules have text types, such as amounts of money, whose
#: bounds do not fit into a cell.
GENERATED = (
    "analysis",
    "cors",
    "egress",
    "external_policies",
    "jwt",
    "ledger",
    "limits",
    "metrics",
    "payloads",
    "policy",
    "providers",
    "telemetry",
    "timeouts",
)
_ROW = re.compile(r"^\| `([A-Za-z0-9.\[\]]+)` \|.*\|$")
_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))

Schema = dict[str, Any]


def main() -> int:
    """Writes or checks the page; returns the exit code."""
    before = PAGE.read_text().splitlines()
    after = with_rows(before, list(rows(Settings)))
    if "--check" not in sys.argv[1:]:
        PAGE.write_text("\n".join(after) + "\n")
    elif after != before:
        print(f"{PAGE.name} is stale: run python schema/readme_table.py", file=sys.stderr)
        return 1
    return 0


def with_rows(page: list[str], made: list[Row]) -> list[str]:
    """Return a page's lines with the generated rows. A missing row is inserted after its predecessor."""
    generated = {row.field: row.line for row in made if row.is_generated}
    after = [generated.get(found[1], line) if (found := _ROW.match(line)) else line for line in page]
    fields = [found[1] if (found := _ROW.match(line)) else None for line in after]
    for before, row in pairwise(made):
        if row.field not in fields and before.field in fields:
            at = fields.index(before.field) + 1
            fields.insert(at, row.field)
            after.insert(at, row.line)
    return after


@dataclass(frozen=True)
class Row:
    """A field's path, its table line, and whether the line is always generated."""

    field: str
    line: str
    is_generated: bool


def rows(section: type[BaseModel], below: str = "") -> Iterator[Row]:
    """Yields the row of each field that the schema defines."""
    properties: Schema = section.model_json_schema(by_alias=True)["properties"]
    required = section.model_json_schema(by_alias=True).get("required", ())
    for name, field in section.model_fields.items():
        alias = field.alias or ""
        path = below + alias + ("[]" if "tuple[" in str(field.annotation) else "")
        inner = next(models(field.annotation), None)
        if inner is not None:
            yield from rows(inner, f"{path}.")
        elif (module := schema_module(section, name)) is not None:
            node = properties[alias]
            default = "required" if alias in required else shown(node.get("default"))
            cells = (f"`{path}`", default, bounds(alias, node), cell(node["description"]))
            yield Row(path, "| " + " | ".join(cells) + " |", module in GENERATED)


def schema_module(section: type[BaseModel], field: str) -> str | None:
    """Return the schema's module that defines a field; None if a subclass outside the schema defines it."""
    owner = next(one for one in section.__mro__ if field in get_annotations(one))
    package, _, module = owner.__module__.partition(".")
    return module if issubclass(owner, Section) and package == "proofgate_schema" else None


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yields the models in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models(inner)


def bounds(name: str, field: Schema) -> str:
    """Return a field's bounds: its values or its range, with units for bytes."""
    node = next((one for one in field.get("anyOf", ()) if one.get("type") != "null"), field)
    values = node.get("enum") or node.get("items", {}).get("enum")
    if values:
        return ", ".join(f"`{value}`" for value in values)
    if "maxItems" in node:
        return f"at most {node['maxItems']} items"
    if "minimum" in node and "maximum" in node:
        written = in_bytes if name.lower().endswith("bytes") else plain
        return f"{written(node['minimum'])} to {written(node['maximum'])}"
    return ""


def in_bytes(number: float) -> str:
    """Return a number of bytes in the largest unit of which it is a whole multiple."""
    return next(
        (f"{int(number) // unit} {name}" for unit, name in _UNITS if not number % unit), plain(number)
    )


def plain(number: float) -> str:
    """Return a number as text, without a fraction of zero."""
    return str(int(number) if number == int(number) else number)


def shown(default: Any) -> str:
    """Return a default as a user would write it."""
    if default is None or default == {}:
        return "none"
    if isinstance(default, list):
        return ", ".join(f"`{value}`" for value in default) or "none"
    if isinstance(default, bool) or not isinstance(default, int | float):
        return f"`{str(default).lower() if isinstance(default, bool) else default}`"
    return plain(default)


def cell(text: str) -> str:
    """Return a text in a form that a table cell can contain."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
