"""Formats rows as a table and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

#: Columns of a CSV file, which are fields of an exchange. Lists are joined with spaces.
CSV_COLUMNS = (
    *(
        "time",
        "id",
        "tenant",
        "key",
        "key_name",
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
    *("session", "end_user", "end_user_name", "agent", "parent_agent", "trace_id", "client_address"),
)
#: The start of a cell (at the start of the text, after a list separator of any locale, or after a line end),
#: followed by the first character of a formula. Some spreadsheets ignore blanks and quotes before it.
_FORMULA_START = re.compile(
    r"(^|[;\t|\r\n\v\f\x1c-\x1e\x85\u2028\u2029])(?=[\s\"']*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])"
)
#: Function that makes the text of a cell safe for spreadsheets.
Quote = Callable[[str], str]
_HEADINGS = ("TIME", "TENANT", "MODEL", "PROVIDER", "VERDICT", "OUTCOME", "STATUS", "TOKENS", "USD", "ID")
_NANODOLLARS = 1_000_000_000


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Formats rows in columns of the necessary width."""
    lines = [_HEADINGS, *(_line(facts) for facts in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def csv_line(cells: Sequence[Any], *, quote: Quote | None = None) -> str:
    """Formats one CSV line (RFC 4180). A quote is inserted before any text that a spreadsheet could read as a
    formula, also after a character that separates cells in another locale."""
    out = io.StringIO()
    csv.writer(out).writerow([(quote or _quote_formulas)(_text(cell)) for cell in cells])
    return out.getvalue()


def csv_row(
    facts: dict[str, Any], columns: Sequence[str] = CSV_COLUMNS, *, quote: Quote | None = None
) -> str:
    """Formats the CSV line of a row."""
    return csv_line([facts[name] for name in columns], quote=quote)


def csv_header(columns: Sequence[str] = CSV_COLUMNS) -> str:
    """Formats the CSV line of column names."""
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
    return tuple("-" if cell in (None, "") else replace_unprintable(str(cell)) for cell in cells)


def replace_unprintable(text: str) -> str:
    """Replaces characters of a foreign text that could control a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def quote_leading_formula(text: str) -> str:
    """Quotes formulas like exports up to version 2, which do not quote formulas after a semicolon."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _text(cell: Any) -> str:
    return " ".join(cell) if isinstance(cell, list) else "" if cell is None else str(cell)


def _quote_formulas(text: str) -> str:
    return _FORMULA_START.sub(r"\1'", text)
