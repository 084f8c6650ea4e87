"""The SQL conditions of a filter for the rows of a day."""

from __future__ import annotations

import sqlite3
from typing import Any

from proofgate.index import schema
from proofgate.index.days import encode_request_id
from proofgate.index.filter import OPEN, Filter


def conditions_of(connection: sqlite3.Connection, asked: Filter) -> list[tuple[str, Any]] | None:
    """Returns the SQL conditions for rows of a day, each with its value; None if no row can match.

    Raises sqlite3.Error.
    """
    conditions: list[tuple[str, Any]] = []
    # The indexes of these columns select fewer rows than the index of tenants. The plus sign prevents its
    # use.
    few = (asked.session, asked.end_user, asked.end_user_name, asked.client_address, asked.trace_id)
    is_of_few = any(named is not None for named in few)
    for column, named in (
        ("+tenant" if is_of_few else "tenant", asked.tenant),
        *(("model", asked.model), ("key", asked.key), ("key_name", asked.key_name)),
        *(("session", asked.session), ("end_user", asked.end_user), ("end_user_name", asked.end_user_name)),
        *(("client_address", asked.client_address), ("agent", asked.agent)),
    ):
        if named is not None:
            conditions.append((f"{column} = ?", _text(connection, named)))
    for column, named in (("providers", asked.provider), ("rules", asked.rule)):
        if named is not None:
            members = f"{column} IS NOT NULL AND {column} IN (SELECT list FROM member WHERE text = ?)"  # noqa: S608
            conditions.append((members, _text(connection, named)))
    if asked.outcome == OPEN:
        conditions.append(("end_seq IS NULL", 0))
    elif asked.outcome is not None:
        conditions.append(("outcome = ?", _text(connection, asked.outcome)))
    if asked.verdict is not None:
        number = schema.VERDICTS.index(asked.verdict)
        # The index of verdicts omits allowed exchanges.
        conditions.append(("verdict > 0 AND verdict = ?" if number else "verdict = ?", number))
    if asked.id is not None:
        conditions.append(("id = ?", encode_request_id(asked.id)))
    if asked.trace_id is not None:
        conditions.append(("trace_id = ?", bytes.fromhex(asked.trace_id)))
    if asked.min_cost is not None:
        conditions.append(("cost >= ?", asked.min_cost))
    if any(value is None for _, value in conditions):
        return None
    return [(condition, value if "?" in condition else None) for condition, value in conditions]


def _text(connection: sqlite3.Connection, text: str) -> int | None:
    row = connection.execute("SELECT id FROM text WHERE text = ?", (text,)).fetchone()
    return None if row is None else int(row[0])
