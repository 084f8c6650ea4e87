"""What an index adds up to: exchanges, tokens and cost of each tenant, by day, and the shards that recorded
them."""

from __future__ import annotations

from typing import Any

from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.query import Questions
from proofgate.index.schema import VERDICTS, day_name

#: Days of tenants that one answer tells: it is put together in memory, which is the auditor's too.
MOST_DAYS = 20_000

#: Sums are floating-point: what a provider says of tokens is whatever it likes, and whole numbers overflow.
_SUMS = """
SELECT (SELECT text FROM text WHERE id = tenant), log, count(*), sum(verdict = ?), sum(verdict = ?),
  sum(end_seq IS NULL), total(prompt_tokens), total(completion_tokens), total(cost),
  sum(verdict != ? AND end_seq IS NOT NULL AND cost IS NULL)
FROM exchange WHERE"""
_NAMES = ("exchanges", "refused", "blocked", "open")
_TOTALS = ("prompt_tokens", "completion_tokens", "cost_nanodollars")


def tenants(questions: Questions, asked: Filter) -> list[dict[str, Any]]:
    """The tenants of a time, or one of them: `tenant` (null for refusals of nobody's), `exchanges` and of
    these `refused`, `blocked` and `open`, tokens, `cost_nanodollars`, `unpriced` (how many ended without a
    known cost), `shards`, and the same figures for each of the `days`.

    Raises IndexUnusableError, also when there are too many (`bad_filter`).
    """
    found: dict[str | None, dict[str, Any]] = {}
    refused, blocked = VERDICTS.index("refused"), VERDICTS.index("blocked")
    days = 0
    for day, (tenant, log, *figures) in questions.sums(asked, _SUMS, [refused, blocked, refused]):
        of = found.setdefault(tenant, {"tenant": tenant, **_nothing(), "shards": set(), "days": {}})
        if day not in of["days"]:
            of["days"][day] = _nothing()
            days += 1
        if days > MOST_DAYS:
            message = f"these are more than {MOST_DAYS} days of tenants: ask for a tenant, or for less time"
            raise IndexUnusableError(message, "bad_filter")
        for name, figure in zip((*_NAMES, *_TOTALS, "unpriced"), figures, strict=True):
            of[name] += int(figure)
            of["days"][day][name] += int(figure)
        origin = questions.origin(log)
        if origin is not None:
            of["shards"].add(origin.split("/")[-2])
    for of in found.values():
        of["shards"] = sorted(of["shards"], key=lambda shard: (len(shard), shard))
        of["days"] = [{"day": day_name(day), **figures} for day, figures in sorted(of["days"].items())]
    return sorted(found.values(), key=lambda of: (of["tenant"] is None, of["tenant"] or ""))


def _nothing() -> dict[str, int]:
    return dict.fromkeys((*_NAMES, *_TOTALS, "unpriced"), 0)
