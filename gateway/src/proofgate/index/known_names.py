"""The choices for filters: the tenants, models, providers, rules, keys, agents and sessions of an index."""

from __future__ import annotations

import json
from typing import Any

from proofgate.index import sums
from proofgate.index.query import IndexSnapshot
from proofgate.index.sums import DAY

#: Maximum number of names of each kind.
MAX_NAMES = 200
#: Number of newest days that are searched for keys, providers and sessions.
MAX_DAYS = 7
#: Number of newest exchanges of each of these days that are searched.
_MAX_ROWS = 1000
#: Kinds of names, and their columns.
_COLUMNS = {
    "keys": "key",
    "key_names": "key_name",
    "outcomes": "outcome",
    "agents": "agent",
    "sessions": "session",
    "providers": "providers",
}

#: Query for the texts of the numbers in a JSON list.
_TEXTS = "SELECT id, text FROM text WHERE id IN (SELECT value FROM json_each(?))"
_MEMBERS = """SELECT id, text FROM text
  WHERE id IN (SELECT text FROM member WHERE list IN (SELECT value FROM json_each(?)))"""
_NUMBER = "(SELECT id FROM text WHERE text = ?)"


def known_names(questions: IndexSnapshot, tenant: str | None = None) -> dict[str, list[str]]:
    """Returns names by kind, of one tenant or all, in alphabetical order; `sessions` newest first. At most
    MAX_NAMES of each kind.

    Raises IndexUnusableError.
    """
    found: dict[str, dict[str, None]] = {name: {} for name in ("tenants", "models", "rules", *_COLUMNS)}
    days = questions.days[:1] + questions.days[-1:]
    first, behind = (days[0], days[-1] + 1) if days else (0, 0)
    for kind, numbers, values in (
        ("tenants", *_tenants(tenant)),
        (
            "models",
            f"SELECT model FROM used WHERE {sums.ONE_TENANT_CONDITION}",  # noqa: S608
            sums.one_tenant_values(-DAY, first, behind, tenant),
        ),
        (
            "rules",
            f"SELECT rule FROM ruled WHERE {sums.ONE_TENANT_CONDITION}",  # noqa: S608
            sums.one_tenant_values(DAY, first, behind, tenant),
        ),
    ):
        # The statement contains no external text.
        select = f"SELECT text FROM name WHERE id IN ({numbers}) ORDER BY text LIMIT ?"  # noqa: S608
        rows = questions.query_catalogue(select, [*values, MAX_NAMES])
        found[kind].update(dict.fromkeys(text for (text,) in rows))
    for day in questions.days[::-1][:MAX_DAYS]:
        _add_names_of_day(questions, day, tenant, found)
    return {
        kind: list(names)[:MAX_NAMES] if kind == "sessions" else sorted(names)[:MAX_NAMES]
        for kind, names in found.items()
    }


def _tenants(tenant: str | None) -> tuple[str, list[Any]]:
    """SQL that selects the numbers of all tenants, or of one, and its parameters."""
    if tenant is None:
        return "SELECT tenant FROM used WHERE span = ?", [DAY]
    one = "SELECT tenant FROM used WHERE span = ? AND tenant = (SELECT id FROM name WHERE text = ?)"
    return one, [DAY, tenant]


def _add_names_of_day(
    questions: IndexSnapshot, day: int, tenant: str | None, found: dict[str, dict[str, None]]
) -> None:
    """Adds the names in the newest exchanges of a day."""
    of_tenant, values = ("", []) if tenant is None else (f" WHERE tenant = {_NUMBER}", [tenant])
    columns = ", ".join(_COLUMNS.values())
    select = f"SELECT {columns} FROM exchange{of_tenant} ORDER BY ts DESC LIMIT {_MAX_ROWS}"  # noqa: S608 - ours
    rows = questions.query_day(day, select, values)
    for kind, numbers in zip(_COLUMNS, zip(*rows, strict=True), strict=False):
        # Without duplicates, newest first.
        wanted = [number for number in dict.fromkeys(numbers) if number is not None][:MAX_NAMES]
        select = _MEMBERS if kind == "providers" else _TEXTS
        text_of = dict(questions.query_day(day, select, [json.dumps(wanted)]))
        if kind == "providers":
            found[kind].update(dict.fromkeys(text_of.values()))
        else:
            found[kind].update(dict.fromkeys(text_of[number] for number in wanted if number in text_of))
