"""A summary of each minute of a day, and of each hour of a tenant, so that a query skips times without
matches.

A summary may list values that its rows no longer have, but never omits one. The rows are always checked.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

from proofgate.index.filter import OPEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from proofgate.index.filter import Filter

#: Columns, by the core's numbers.
KEY, MODEL, PROVIDERS, OUTCOME, RULES, KEY_NAME = range(6)
_MINUTE_MICROSECONDS = 60_000_000
_MINUTES_PER_HOUR = 60
#: SQL condition for a column that contains a text, as a single value or in a list.
_TEXT_CONDITION = "number = (SELECT id FROM text WHERE text = ?)"
_MEMBER_CONDITION = "number IN (SELECT list FROM member WHERE text = (SELECT id FROM text WHERE text = ?))"
_TENANT = "tenant = (SELECT id FROM text WHERE text = ?)"


def minute_of(ts: int) -> int:
    """Converts a time in Unix microseconds to minutes since 1970-01-01."""
    return ts // _MINUTE_MICROSECONDS


def hour_of(ts: int) -> int:
    """Converts a time in Unix microseconds to hours since 1970-01-01."""
    return minute_of(ts) // _MINUTES_PER_HOUR


def record_minutes(
    connection: sqlite3.Connection,
    held: Iterable[tuple[int, int, int]],
    costs: Iterable[tuple[int, int]],
    of_tenants: Iterable[tuple[int, int, int, int]],
    of_tenants_costs: Iterable[tuple[int, int, int]],
) -> None:
    """Adds to the summaries of minutes: `held` has column, number and minute, `costs` has minute and cost in
    nanodollars. The last two arguments are the same for hours, each with the number of a tenant in front."""
    connection.executemany("INSERT OR IGNORE INTO held VALUES (?, ?, ?)", held)
    connection.executemany(
        "INSERT INTO costs VALUES (?, ?) ON CONFLICT(minute) DO UPDATE SET most = max(most, excluded.most)",
        costs,
    )
    connection.executemany("INSERT OR IGNORE INTO tenant_held VALUES (?, ?, ?, ?)", of_tenants)
    connection.executemany(
        "INSERT INTO tenant_costs VALUES (?, ?, ?)"
        " ON CONFLICT(tenant, hour) DO UPDATE SET most = max(most, excluded.most)",
        of_tenants_costs,
    )


def spans(connection: sqlite3.Connection, asked: Filter, begin: int, end: int) -> list[tuple[int, int]]:
    """Returns the spans between `begin` and `end` that may have matches, in order: start, and end
    (exclusive).

    Raises sqlite3.Error.
    """
    wanted, values = _select_times(asked, "minute", "held", "costs")
    if not wanted:
        return [(begin, end)] if begin < end else []
    if asked.tenant is not None:
        # A key belongs to one tenant, so the tenant's table is not needed.
        hours, more = _select_times(
            replace(asked, key=None), "hour", "tenant_held", "tenant_costs", asked.tenant
        )
        if hours:
            wanted = f"SELECT minute FROM ({wanted}) WHERE minute / {_MINUTES_PER_HOUR} IN ({hours})"  # noqa: S608 - ours
            values += more
    found: list[tuple[int, int]] = []
    for (minute,) in connection.execute(f"{wanted} ORDER BY minute", values):
        first, behind = (
            max(begin, minute * _MINUTE_MICROSECONDS),
            min(end, (minute + 1) * _MINUTE_MICROSECONDS),
        )
        if first >= behind:
            continue
        if found and found[-1][1] == first:
            first = found.pop()[0]
        found.append((first, behind))
    return found


def _select_times(
    asked: Filter, time: str, held: str, costs: str, tenant: str | None = None
) -> tuple[str, list[int | str]]:
    """SQL that selects the times that may have matches from two tables (with `tenant`, from the tables by
    tenant), and its values. Empty if the tables cannot restrict the times."""
    of, who = ("", []) if tenant is None else (f"{_TENANT} AND ", [tenant])
    questions: list[str] = []
    values: list[int | str] = []
    for column, named, number in (
        (KEY, asked.key, _TEXT_CONDITION),
        (KEY_NAME, asked.key_name, _TEXT_CONDITION),
        (MODEL, asked.model, _TEXT_CONDITION),
        (OUTCOME, None if asked.outcome == OPEN else asked.outcome, _TEXT_CONDITION),
        (PROVIDERS, asked.provider, _MEMBER_CONDITION),
        (RULES, asked.rule, _MEMBER_CONDITION),
    ):
        if named is not None:
            questions.append(f"SELECT {time} FROM {held} WHERE {of}held = ? AND {number}")  # noqa: S608 - ours
            values += [*who, column, named]
    if asked.min_cost is not None:
        questions.append(f"SELECT {time} FROM {costs} WHERE {of}most >= ?")  # noqa: S608 - ours
        values += [*who, asked.min_cost]
    return " INTERSECT ".join(questions), values
