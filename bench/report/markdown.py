"""Cells and tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NOTHING = "-"

Json = dict[str, Any]


def median(row: dict[str, Any], figure: str, form: str) -> str:
    """The median of a figure of a row; None if it has none."""
    spread = row.get(figure)
    return form.format(spread["median"]) if spread else NOTHING


def cell(spread: dict[str, float] | None, form: str) -> str:
    """A median with minimum and maximum."""
    if not spread:
        return NOTHING
    middle, low, high = (form.format(spread[name]) for name in ("median", "min", "max"))
    return f"{middle} ({low} to {high})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; empty without rows."""
    if not rows:
        return ""
    clean = [[text.replace("|", "\\|").replace("\n", " ") for text in row] for row in rows]
    lines = [list(head), ["---"] * len(head), *clean]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
