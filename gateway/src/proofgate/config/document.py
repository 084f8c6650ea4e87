"""Parsing of YAML text to plain data, with the line of every field.

PyYAML silently keeps the last of two equal keys. Here the second key is refused, because a configuration with
two values is a mistake, and a dangerous one in an allow-list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

# The path of a field: mapping keys and list positions from the top.
FieldPath = tuple[str | int, ...]

_MERGE = "tag:yaml.org,2002:merge"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class DocumentError(Exception):
    """The text is not the expected YAML. `line` counts from 1; None if the error is about the whole text."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Document:
    """The data of a YAML text, a mapping or a list, and the line of each field."""

    data: Any
    lines: dict[FieldPath, int]

    def line_of(self, path: FieldPath) -> int | None:
        """The line (from 1) of a field, or of the closest enclosing field; None if neither is known."""
        for length in range(len(path), -1, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return line
        return None


class _Loader(yaml.SafeLoader):
    """The safe loader without aliases, because a few nested aliases expand to more fields than memory can
    hold.

    Dates stay text, so that the same RFC 3339 parser checks them, quoted or not. Merge keys need aliases, so
    they are not supported either.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_MERGE, _TIMESTAMP)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            line: int = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise DocumentError("YAML aliases are not supported: write the value out", line)
        return super().compose_node(parent, index)


def parse_document(text: str) -> Document:
    """Parses one YAML mapping with the safe loader. Raises DocumentError."""
    return _parse(text, yaml.MappingNode, "a mapping of fields")


def parse_list(text: str) -> Document:
    """Parses one YAML list with the safe loader. Raises DocumentError."""
    return _parse(text, yaml.SequenceNode, "a list")


def _parse(text: str, expected: type[yaml.Node], described: str) -> Document:
    try:
        return _compose(text, expected, described)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DocumentError(f"not valid YAML: {error.problem}", mark.line + 1 if mark else None) from None
    except yaml.YAMLError:
        raise DocumentError("not valid YAML: a character that YAML does not allow", None) from None
    except RecursionError:
        raise DocumentError("not valid YAML: fields are nested too deep", None) from None


def _compose(text: str, expected: type[yaml.Node], described: str) -> Document:
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            raise DocumentError("the file is empty", None)
        if not isinstance(root, expected):
            raise DocumentError(f"expected {described} at the top level", root.start_mark.line + 1)
        lines: dict[FieldPath, int] = {}
        _locate(root, (), lines)
        try:
            return Document(loader.construct_document(root), lines)
        except ValueError:
            # PyYAML treats 0x_ as a number and then cannot parse it.
            raise DocumentError("not valid YAML: a value is neither a number nor quoted", None) from None
    finally:
        loader.dispose()


def _locate(node: yaml.Node, path: FieldPath, lines: dict[FieldPath, int]) -> None:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise DocumentError("a field name must be plain text", line)
            if key.value in seen:
                raise DocumentError(f"the field {key.value} is given twice: remove one", line)
            seen.add(key.value)
            _require_text(key)
            _locate(value, (*path, key.value), lines)
            lines[(*path, key.value)] = line
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            _locate(value, (*path, position), lines)
    else:
        _require_text(node)


def _require_text(node: yaml.Node) -> None:
    try:
        node.value.encode()
    except UnicodeEncodeError:
        # An escape such as "\ud800" is an unpaired surrogate, which UTF-8 and JSON cannot represent.
        raise DocumentError("unpaired surrogate in an escape", node.start_mark.line + 1) from None
