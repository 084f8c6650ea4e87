"""What an index adds up to: exchanges, tokens and cost of each tenant, by day, and the shards that recorded
them."""

from __future__ import annotations

from typing import Any

from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.query import Questions
from proofgate.index.schema import VERDICTS, day_name

#: Tenants that one answer tells. Their names come from configurations, which have far fewer.
MOST_TENANTS = 10_000

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
    for day, rows in questions.sums(asked, _SUMS, [refused, blocked, refused]):
        for tenant, log, *figures in rows:
            of = found.setdefault(tenant, {"tenant": tenant, **_nothing(), "shards": set(), "days": {}})
            if len(found) > MOST_TENANTS:
                raise IndexUnusableError("these are too many tenants: ask for one", "bad_filter")
            of_day = of["days"].setdefault(day, _nothing())
            for name, figure in zip((*_NAMES, *_TOTALS, "unpriced"), figures, strict=True):
                of[name] += int(figure)
                of_day[name] += int(figure)
            origin = questions.origin(log)
            if origin is not None:
                of["shards"].add(origin.split("/")[-2])
    for of in found.values():
        of["shards"] = sorted(of["shards"], key=lambda shard: (len(shard), shard))
        of["days"] = [{"day": day_name(day), **figures} for day, figures in sorted(of["days"].items())]
    return sorted(found.values(), key=lambda of: (of["tenant"] is None, of["tenant"] or ""))


def _nothing() -> dict[str, int]:
    return dict.fromkeys((*_NAMES, *_TOTALS, "unpriced"), 0)
