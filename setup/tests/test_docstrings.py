"""Docstrings name only exceptions that exist, because a rename does not change docstrings."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
_EXCEPTION = re.compile(r"\b(?:[A-Z][a-z]+)+(?:Error|Exception)\b")
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _trees(package: str) -> Iterator[tuple[Path, ast.Module]]:
    for pattern in ("*.py", "*.pyi"):
        for path in sorted((REPOSITORY / package / "src").rglob(pattern)):
            yield path, ast.parse(path.read_text())


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).rpartition(".")[2] for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr


@pytest.mark.parametrize("package", ["gateway", "operator", "schema"])
def test_docstrings_name_exceptions_that_exist(package: str) -> None:
    documented: list[tuple[str, str]] = []
    known = set(dir(builtins))
    for path, tree in _trees(package):
        known.update(_names(tree))
        for node in ast.walk(tree):
            if isinstance(node, _Documented) and (text := ast.get_docstring(node)):
                where = f"{path.relative_to(REPOSITORY)}:{getattr(node, 'lineno', 1)}"
                documented.extend((where, name) for name in _EXCEPTION.findall(text))
    assert [(where, name) for where, name in documented if name not in known] == []
