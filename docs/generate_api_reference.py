"""Writes the generated parts of docs/reference: the manifest from the CRD, the framing refusals from the parser.

`python docs/generate_api_reference.py` writes them; with `--check` it exits with 1 when they are stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "reference" / "api-reference.md"
CRDS = REPOSITORY / "crds"
REFUSALS = REPOSITORY / "rust-core" / "crates" / "wire" / "src" / "protocol_error.rs"

Schema = dict[str, Any]


def main() -> int:
    """Writes or checks the page; returns the exit code."""
    page = PAGE.read_text()
    fresh = page
    for kind, mark in (("governancegateways", ""), ("gatewaytenants", "tenant ")):
        found = schema(kind)
        for name, made in (("spec", spec), ("status", status), ("rules", rules)):
            fresh = replaced(fresh, f"{mark}{name}", made(found))
    fresh = replaced(fresh, "refusals", refusals())
    if sys.argv[1:] == ["--check"]:
        if fresh != page:
            print(f"{PAGE.name} is stale: run python docs/generate_api_reference.py", file=sys.stderr)
        return int(fresh != page)
    PAGE.write_text(fresh)
    return 0


def replaced(page: str, name: str, text: str) -> str:
    """The page with another text between the two marks of a part."""
    begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
    before, mark, rest = page.partition(begin)
    _, closing, after = rest.partition(end)
    if not mark or not closing:
        raise SystemExit(f"{PAGE.name} has no part {name}")
    return f"{before}{mark}{text}\n{closing}{after}"


def schema(plural: str) -> Schema:
    """The schema of a whole object."""
    crd = yaml.safe_load((CRDS / f"proofgate.dev_{plural}.yaml").read_text())
    found: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def spec(of: Schema) -> str:
    """Every field of the spec as a table."""
    lines = ["| field | type | default | bounds | meaning |", "|---|---|---|---|---|"]
    for path, field, required in fields(of["properties"]["spec"], "spec"):
        default = "**required**" if required else shown(field.get("default"))
        description = cell(field.get("description", ""))
        lines.append(f"| `{path}` | {kind(field)} | {default} | {bounds(field)} | {description} |")
    return "\n".join(lines)


def status(of: Schema) -> str:
    """Every field of the status as a table."""
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for path, field, _ in fields(of["properties"]["status"], "status"):
        lines.append(f"| `{path}` | {kind(field)} | {cell(field.get('description', ''))} |")
    return "\n".join(lines)


def rules(of: Schema) -> str:
    """What the API server refuses beyond types and bounds, in the words of the refusal."""
    return "\n".join(f"- {message}" for message in messages(of))


def fields(node: Schema, path: str) -> Iterator[tuple[str, Schema, bool]]:
    """Yields every field below a node with its path, and whether it has to be given."""
    inner = node.get("items", node)
    for name, field in inner.get("properties", {}).items():
        below = f"{path}.{name}"
        yield below, field, name in inner.get("required", ())
        yield from fields(field, f"{below}[]" if field.get("type") == "array" else below)


def messages(node: Any) -> Iterator[str]:
    """Yields the messages of all validation rules below a node."""
    if isinstance(node, dict):
        for rule in node.get("x-kubernetes-validations", ()):
            yield rule["message"]
        for value in node.values():
            yield from messages(value)


def kind(field: Schema) -> str:
    """A field's type in a word or two."""
    if field.get("x-kubernetes-int-or-string"):
        return "string or integer"
    if field.get("type") == "array":
        return f"list of {field['items'].get('type', 'object')}s"
    if "additionalProperties" in field:
        return f"map of {kind(field['additionalProperties'])}s"
    return str(field.get("format") if field.get("format") == "date-time" else field.get("type", "object"))


def bounds(field: Schema) -> str:
    """A field's bounds: its values, its range, or its length and pattern."""
    found = []
    if "enum" in field:
        found.append(", ".join(f"`{value}`" for value in field["enum"]))
    if "minimum" in field or "maximum" in field:
        found.append(f"{field.get('minimum', '')} to {field.get('maximum', '')}")
    for what, unit in (("Length", "characters"), ("Items", "items"), ("Properties", "entries")):
        if f"max{what}" in field:
            least = field.get(f"min{what}")
            found.append(f"{f'{least} to' if least else 'at most'} {field[f'max{what}']} {unit}")
    if "pattern" in field:
        found.append(f"`{cell(field['pattern'])}`")
    if field.get("x-kubernetes-list-map-keys"):
        found.append(f"unique by {', '.join(field['x-kubernetes-list-map-keys'])}")
    for inner in (field.get("items", {}), field.get("additionalProperties", {})):
        if inner.get("type") == "string":
            found.append(f"each {bounds(inner)}")
    return "; ".join(found)


def shown(default: Any) -> str:
    """A default. A section has none to show: its fields have their own."""
    if default is None or isinstance(default, dict):
        return ""
    if isinstance(default, list):
        return ", ".join(f"`{value}`" for value in default) or "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def cell(text: str) -> str:
    """Text that can stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def refusals() -> str:
    """Every rule of the parser with its code and status."""
    source = REFUSALS.read_text()
    enum, methods = source.split("impl ProtocolError", 1)
    codes = dict(re.findall(r'Self::(\w+) => "(\w+)"', methods))
    statuses: dict[str, str] = {}
    for variants, number in re.findall(r"((?:Self::\w+(?: \| )?)+) => (\d{3})", methods):
        statuses |= dict.fromkeys(re.findall(r"Self::(\w+)", variants), number)
    lines = ["| code | status | message |", "|---|---|---|"]
    for message, variant in re.findall(r'#\[error\(\s*"([^"]+)"\s*\)\]\s+(\w+),', enum):
        lines.append(f"| `{codes[variant]}` | {statuses.get(variant, '400')} | {cell(message)} |")
    if len(lines) != len(codes) + 2:
        raise SystemExit(f"{REFUSALS.name} has {len(codes)} codes and {len(lines) - 2} messages that can be read")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
