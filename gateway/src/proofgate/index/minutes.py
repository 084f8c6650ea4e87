"""What each minute of a day holds, so that a question passes over the minutes that have nothing for it.

A minute may be said to hold what it no longer does, never the other way round: its rows are looked at anyway.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from proofgate.index.filter import OPEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from proofgate.index.filter import Filter

#: The columns, as the core numbers them.
KEY, MODEL, PROVIDERS, OUTCOME, RULES = range(5)
_MICROSECONDS = 60_000_000
#: Where a text stands in a column, alone or in a list.
_OF_TEXT = "SELECT minute FROM held WHERE held = ? AND number = (SELECT id FROM text WHERE text = ?)"
_OF_MEMBER = """SELECT minute FROM held WHERE held = ? AND number IN
  (SELECT list FROM member WHERE text = (SELECT id FROM text WHERE text = ?))"""


def minute_of(ts: int) -> int:
    """The minute of a time in unix microseconds, from 1970-01-01 on."""
    return ts // _MICROSECONDS


def note(
    connection: sqlite3.Connection, held: Iterable[tuple[int, int, int]], costs: Iterable[tuple[int, int]]
) -> None:
    """Adds what minutes hold: column, number and minute; and minute and cost in nanodollars."""
    connection.executemany("INSERT OR IGNORE INTO held VALUES (?, ?, ?)", held)
    connection.executemany(
        "INSERT INTO costs VALUES (?, ?) ON CONFLICT(minute) DO UPDATE SET most = max(most, excluded.most)",
        costs,
    )


def spans(connection: sqlite3.Connection, asked: Filter, begin: int, end: int) -> list[tuple[int, int]]:
    """The times between `begin` and `end` in which there may be what is asked for, in order, from and before.

    Raises sqlite3.Error.
    """
    questions: list[str] = []
    values: list[int | str] = []
    for column, named, question in (
        (KEY, asked.key, _OF_TEXT),
        (MODEL, asked.model, _OF_TEXT),
        (OUTCOME, None if asked.outcome == OPEN else asked.outcome, _OF_TEXT),
        (PROVIDERS, asked.provider, _OF_MEMBER),
        (RULES, asked.rule, _OF_MEMBER),
    ):
        if named is not None:
            questions.append(question)
            values += [column, named]
    if asked.min_cost is not None:
        questions.append("SELECT minute FROM costs WHERE most >= ?")
        values.append(asked.min_cost)
    if not questions:
        return [(begin, end)] if begin < end else []
    found: list[tuple[int, int]] = []
    for (minute,) in connection.execute(f"{' INTERSECT '.join(questions)} ORDER BY minute", values):
        first, behind = max(begin, minute * _MICROSECONDS), min(end, (minute + 1) * _MICROSECONDS)
        if first >= behind:
            continue
        if found and found[-1][1] == first:
            first = found.pop()[0]
        found.append((first, behind))
    return found
