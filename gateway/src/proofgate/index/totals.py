"""Totals of an index: exchanges, tokens and cost of each tenant, by day, and the shards that recorded
them."""

from __future__ import annotations

from typing import Any

from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot
from proofgate.index.schema import day_name
from proofgate.index.sums import UsageSums
from proofgate.index.usage import usage_by_day

#: Maximum number of rows in a response, which is built in the auditor's memory.
MAX_TENANT_DAYS = 20_000

_COUNT_FIELDS = ("exchanges", "refused", "denied", "blocked", "would_block", "redacted", "flagged", "open")
_TOTAL_FIELDS = ("prompt_tokens", "completion_tokens", "cost_nanodollars")


def tenants(questions: IndexSnapshot, asked: Filter) -> list[dict[str, Any]]:
    """Returns the totals of each tenant in a period, or of one tenant: `tenant` (null for refusals without a
    tenant), `exchanges` and of these `refused`, `denied`, `blocked`, `would_block`, `redacted`, `flagged` and
    `open`, tokens, `cost_nanodollars`, `unpriced` (the number of ended exchanges without a known cost),
    `shards`, and the same totals for each of the `days`.

    Raises IndexUnusableError, also if there are too many rows (`bad_filter`).
    """
    found: dict[str | None, dict[str, Any]] = {}
    days = 0
    for day, tenant, shard, used in usage_by_day(questions, asked):
        of = found.setdefault(tenant, {"tenant": tenant, **_empty_totals(), "shards": set(), "days": {}})
        if day not in of["days"]:
            of["days"][day] = _empty_totals()
            days += 1
        if days > MAX_TENANT_DAYS:
            message = f"the result has more than {MAX_TENANT_DAYS} rows: choose a tenant or a shorter time"
            raise IndexUnusableError(message, "bad_filter")
        for name, figure in _figures(used).items():
            of[name] += figure
            of["days"][day][name] += figure
        of["shards"].add(shard)
    for of in found.values():
        of["shards"] = sorted(of["shards"], key=lambda shard: (len(shard), shard))
        of["days"] = [{"day": day_name(day), **figures} for day, figures in sorted(of["days"].items())]
    return sorted(found.values(), key=lambda of: (of["tenant"] is None, of["tenant"] or ""))


def _figures(used: UsageSums) -> dict[str, int]:
    told = {
        name: getattr(used, name)
        for name in (*_COUNT_FIELDS, "prompt_tokens", "completion_tokens", "unpriced")
    }
    return {name: int(figure) for name, figure in (told | {"cost_nanodollars": used.cost}).items()}


def _empty_totals() -> dict[str, int]:
    return dict.fromkeys((*_COUNT_FIELDS, *_TOTAL_FIELDS, "unpriced"), 0)
