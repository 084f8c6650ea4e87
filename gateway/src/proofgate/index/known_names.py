"""What may be chosen in a filter: the tenants, models, providers, rules, keys, agents and sessions of an
index."""

from __future__ import annotations

from typing import Any

from proofgate.index import minutes
from proofgate.index.query import Questions
from proofgate.index.sums import DAY

#: Of each kind.
MOST_NAMES = 200
#: The newest days that are looked at for keys, providers and sessions.
MOST_DAYS = 7
#: The newest exchanges of each of these days that are looked at for sessions and agents.
_MOST_ROWS = 5000

_HELD = "SELECT DISTINCT number FROM {table} WHERE {tenant}held = ?"
_NUMBER = "(SELECT id FROM text WHERE text = ?)"


def known_names(questions: Questions, tenant: str | None = None) -> dict[str, list[str]]:
    """Names by kind, of one tenant or all, in alphabetical order; `sessions` the newest first. At most
    MOST_NAMES of each.

    Raises IndexUnusableError.
    """
    found: dict[str, dict[str, None]] = {
        name: {}
        for name in ("tenants", "models", "rules", "keys", "providers", "outcomes", "agents", "sessions")
    }
    of_tenant, values = (
        ("", []) if tenant is None else (" AND tenant = (SELECT id FROM name WHERE text = ?)", [tenant])
    )
    for kind, column, table, span in (
        ("tenants", "tenant", "used", -DAY),
        ("models", "model", "used", -DAY),
        ("rules", "rule", "ruled", DAY),
    ):
        # Nothing in it is of others.
        numbers = f"SELECT DISTINCT {column} FROM {table} WHERE span = ?{of_tenant}"  # noqa: S608
        select = f"SELECT text FROM name WHERE id IN ({numbers}) ORDER BY text LIMIT ?"  # noqa: S608
        rows = questions.from_catalogue(select, [span, *values, MOST_NAMES])
        found[kind].update(dict.fromkeys(text for (text,) in rows))
    for day in questions.days[::-1][:MOST_DAYS]:
        _add_of_day(questions, day, tenant, found)
    return {
        kind: list(names)[:MOST_NAMES] if kind == "sessions" else sorted(names)[:MOST_NAMES]
        for kind, names in found.items()
    }


def _add_of_day(
    questions: Questions, day: int, tenant: str | None, found: dict[str, dict[str, None]]
) -> None:
    table, of_tenant = ("held", "") if tenant is None else ("tenant_held", f"tenant = {_NUMBER} AND ")
    values: list[Any] = [] if tenant is None else [tenant]
    held = _HELD.format(table=table, tenant=of_tenant)
    lists = f"SELECT text FROM member WHERE list IN ({held})"  # noqa: S608 - ours
    for kind, column, numbers in (
        ("outcomes", minutes.OUTCOME, held),
        ("providers", minutes.PROVIDERS, lists),
    ):
        select = f"SELECT text FROM text WHERE id IN ({numbers}) LIMIT {MOST_NAMES}"  # noqa: S608 - ours
        _add(found[kind], questions.from_day(day, select, [*values, column]))
    newest = "SELECT key, agent, session FROM exchange"
    if tenant is not None:
        newest += f" WHERE tenant = {_NUMBER}"
    newest += f" ORDER BY ts DESC LIMIT {_MOST_ROWS}"
    for kind, name in (("keys", "key"), ("agents", "agent"), ("sessions", "session")):
        select = f"SELECT (SELECT text FROM text WHERE id = {name}) FROM ({newest}) WHERE {name} IS NOT NULL"  # noqa: S608
        if kind != "sessions" or len(found[kind]) < MOST_NAMES:
            _add(found[kind], questions.from_day(day, select, values))


def _add(names: dict[str, None], rows: list[tuple[Any, ...]]) -> None:
    names.update(dict.fromkeys(text for (text,) in rows if text not in names))
