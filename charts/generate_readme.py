"""Writes the table of values in the chart's README from values.yaml: each key, its default, the comment above it.

`python charts/generate_readme.py` writes it; with `--check` it exits with 1 when it is stale.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parent / "proofgate-operator"
VALUES = CHART / "values.yaml"
README = CHART / "README.md"
BEGIN, END = "<!-- generated: values -->\n", "<!-- end -->"


class UndocumentedValue(Exception):
    """A value without a comment above it."""


@dataclass(frozen=True)
class Value:
    """One value: its path, its default and what it means."""

    path: str
    default: Any
    meaning: str


def comment_above(lines: list[str], line: int, column: int) -> str:
    """The comment that ends right above `line` (from 0) and is indented by `column`."""
    mark = " " * column + "#"
    found: list[str] = []
    while line > 0 and lines[line - 1].startswith(mark):
        line -= 1
        found.insert(0, lines[line].strip().lstrip("#").strip())
    return " ".join(found)


def read(text: str) -> Iterator[Value]:
    """Yields every value; a map that is documented as a whole is one. Raises UndocumentedValue."""
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    yield from _below(root, text.splitlines(), "")


def _below(node: yaml.MappingNode, lines: list[str], prefix: str) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        meaning = comment_above(lines, key.start_mark.line, key.start_mark.column)
        if meaning:
            yield Value(path, yaml.safe_load(yaml.serialize(value)), meaning)
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from _below(value, lines, f"{path}.")
        else:
            raise UndocumentedValue(f"{VALUES.name}: {path} has no comment above it")


def table(values: Iterator[Value]) -> str:
    """The values as a table."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for value in values:
        # A string bare, everything else as one line of JSON, which is YAML.
        shown = value.default if isinstance(value.default, str) and value.default else json.dumps(value.default)
        rows.append(f"| `{value.path}` | `{shown}` | {value.meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def main() -> int:
    """Writes or checks the README; returns the exit code."""
    page = README.read_text()
    marked = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not marked.search(page):
        raise SystemExit(f"{README.name} has no part between {BEGIN.strip()} and {END}")
    rows = table(read(VALUES.read_text()))
    fresh = marked.sub(lambda _: f"{BEGIN}{rows}\n{END}", page)
    if sys.argv[1:] == ["--check"]:
        if fresh != page:
            print("the chart's README is stale: run python charts/generate_readme.py", file=sys.stderr)
        return int(fresh != page)
    README.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
