"""What an index adds up to: exchanges, tokens and cost of each tenant, by day, and the shards that recorded
them."""

from __future__ import annotations

from typing import Any

from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.query import Questions
from proofgate.index.schema import day_name
from proofgate.index.sums import Used
from proofgate.index.used import used_by_day

#: Days of tenants that one answer tells: it is put together in memory, which is the auditor's too.
MOST_DAYS = 20_000

_NAMES = ("exchanges", "refused", "denied", "blocked", "would_block", "redacted", "flagged", "open")
_TOTALS = ("prompt_tokens", "completion_tokens", "cost_nanodollars")


def tenants(questions: Questions, asked: Filter) -> list[dict[str, Any]]:
    """The tenants of a time, or one of them: `tenant` (null for refusals of nobody's), `exchanges` and of
    these `refused`, `denied`, `blocked`, `would_block`, `redacted`, `flagged` and `open`, tokens,
    `cost_nanodollars`, `unpriced` (how many ended without a known cost), `shards`, and the same figures for
    each of the `days`.

    Raises IndexUnusableError, also when there are too many (`bad_filter`).
    """
    found: dict[str | None, dict[str, Any]] = {}
    days = 0
    for day, tenant, shard, used in used_by_day(questions, asked):
        of = found.setdefault(tenant, {"tenant": tenant, **_nothing(), "shards": set(), "days": {}})
        if day not in of["days"]:
            of["days"][day] = _nothing()
            days += 1
        if days > MOST_DAYS:
            message = f"the result has more than {MOST_DAYS} rows: choose a tenant or a shorter time"
            raise IndexUnusableError(message, "bad_filter")
        for name, figure in _figures(used).items():
            of[name] += figure
            of["days"][day][name] += figure
        of["shards"].add(shard)
    for of in found.values():
        of["shards"] = sorted(of["shards"], key=lambda shard: (len(shard), shard))
        of["days"] = [{"day": day_name(day), **figures} for day, figures in sorted(of["days"].items())]
    return sorted(found.values(), key=lambda of: (of["tenant"] is None, of["tenant"] or ""))


def _figures(used: Used) -> dict[str, int]:
    told = {name: getattr(used, name) for name in (*_NAMES, "prompt_tokens", "completion_tokens", "unpriced")}
    return {name: int(figure) for name, figure in (told | {"cost_nanodollars": used.cost}).items()}


def _nothing() -> dict[str, int]:
    return dict.fromkeys((*_NAMES, *_TOTALS, "unpriced"), 0)
