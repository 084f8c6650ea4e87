"""Descriptions of fields: the strings below them in the source, which only the generation of a schema
reads."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


@cache
def field_descriptions(section: type[BaseModel]) -> dict[str, str]:
    """Return the description of each field of a section, by the field's Python name."""
    found: dict[str, str] = {}
    for one in reversed(section.__mro__):
        if issubclass(one, BaseModel) and one is not BaseModel:
            found |= _texts(one)
    return found


def _texts(section: type[BaseModel]) -> dict[str, str]:
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - it is the source of a class
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
