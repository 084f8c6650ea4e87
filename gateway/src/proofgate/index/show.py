"""Rows for a person: a table, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

#: Columns of a CSV, which are facts of a row; lists are joined by blanks.
CSV_COLUMNS = (
    *(
        "time",
        "id",
        "tenant",
        "key",
        "model",
        "providers",
        "endpoint",
        "verdict",
        "rules",
        "outcome",
        "status",
    ),
    *(
        "prompt_tokens",
        "completion_tokens",
        "cost_nanodollars",
        "request_bytes",
        "response_bytes",
        "duration_us",
    ),
    *("session", "end_user", "agent", "parent_agent", "trace_id"),
)
_HEADINGS = ("TIME", "TENANT", "MODEL", "PROVIDER", "VERDICT", "OUTCOME", "STATUS", "TOKENS", "USD", "ID")
_NANODOLLARS = 1_000_000_000


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Rows in columns, as wide as they have to be."""
    lines = [_HEADINGS, *(_line(facts) for facts in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def csv_line(cells: Sequence[Any]) -> str:
    """One line of a CSV as RFC 4180 has it. A text that a spreadsheet would take for a formula gets a quote
    before."""
    out = io.StringIO()
    csv.writer(out).writerow([_cell(cell) for cell in cells])
    return out.getvalue()


def csv_row(facts: dict[str, Any], columns: Sequence[str] = CSV_COLUMNS) -> str:
    """A row's line."""
    return csv_line([facts[name] for name in columns])


def csv_head(columns: Sequence[str] = CSV_COLUMNS) -> str:
    """The line of headings."""
    return csv_line(columns)


def _line(facts: dict[str, Any]) -> tuple[str, ...]:
    tokens = [facts["prompt_tokens"], facts["completion_tokens"]]
    cost = facts["cost_nanodollars"]
    cells = (
        facts["time"],
        facts["tenant"],
        facts["model"],
        ",".join(facts["providers"]),
        facts["verdict"],
        facts["outcome"],
        facts["status"],
        None if tokens[0] is None else "+".join(map(str, tokens)),
        None if cost is None else f"{cost / _NANODOLLARS:.6f}",
        facts["id"],
    )
    return tuple("-" if cell in (None, "") else plain(str(cell)) for cell in cells)


def plain(text: str) -> str:
    """A text of others, in which nothing steers a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _cell(cell: Any) -> str:
    text = " ".join(cell) if isinstance(cell, list) else "" if cell is None else str(cell)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
