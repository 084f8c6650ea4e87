"""What may be chosen in a filter: the tenants, models, providers, rules, keys, agents and sessions of an
index."""

from __future__ import annotations

from proofgate.index.query import Questions
from proofgate.index.sums import DAY

#: Of each kind.
MOST_NAMES = 200
#: The newest days that are looked at for keys, providers and sessions.
MOST_DAYS = 7
#: The newest exchanges of each of these days that are looked at.
_MOST_ROWS = 1000
#: Kinds, and the columns that have them.
_COLUMNS = {
    "keys": "key",
    "outcomes": "outcome",
    "agents": "agent",
    "sessions": "session",
    "providers": "providers",
}

_TEXT = "SELECT text FROM text WHERE id = ?"
_MEMBERS = "SELECT text FROM text WHERE id IN (SELECT text FROM member WHERE list = ?)"
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
    """Adds what the newest exchanges of a day have."""
    of_tenant, values = ("", []) if tenant is None else (f" WHERE tenant = {_NUMBER}", [tenant])
    columns = ", ".join(_COLUMNS.values())
    select = f"SELECT {columns} FROM exchange{of_tenant} ORDER BY ts DESC LIMIT {_MOST_ROWS}"  # noqa: S608 - ours
    rows = questions.from_day(day, select, values)
    for kind, numbers in zip(_COLUMNS, zip(*rows, strict=True), strict=False):
        # Each once, the newest first.
        wanted = [number for number in dict.fromkeys(numbers) if number is not None][:MOST_NAMES]
        members = kind == "providers"
        for number in wanted:
            named = questions.from_day(day, _MEMBERS if members else _TEXT, [number])
            found[kind].update(dict.fromkeys(text for (text,) in named))
