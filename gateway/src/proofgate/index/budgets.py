"""The limits of tenants, their recorded use, and the shard of each.

The limits are in the configuration that is archived beside the ledger. The signed records name the
configuration in force. The use is summed from the index.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from proofgate import archive
from proofgate.config.prices import nanodollars
from proofgate.haproxy_sidecar import ring
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot
from proofgate.index.schema import format_time
from proofgate.index.usage import usage_by_model
from proofgate.limit_kinds import LIMIT_KINDS, LimitKind

#: Maximum number of tenants in a response, which is built in the auditor's memory.
MAX_TENANTS = 1000
_MAX_NAMES = 20_000

_MICROSECONDS = 1_000_000
_DAY_MICROSECONDS = 86_400 * _MICROSECONDS
_SPANS = ("day", "month")
_DOLLARS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_USAGE_FIELDS = ("tokens", "cost_nanodollars", "unpriced", "open")


@dataclass(frozen=True)
class _ActiveConfiguration:
    """The configuration that came into force most recently, and its metadata."""

    digest: str = ""
    since: int = 0
    #: Digests of other configurations that the newest logs of shards name.
    other_digests: tuple[str, ...] = ()
    document: dict[str, Any] | None = None
    code: str = ""


def budgets(
    questions: IndexSnapshot, ledger: Path, tenant: str | None = None, now: int | None = None
) -> dict[str, Any]:
    """Returns the budgets of all tenants, or of one, as of `now` in Unix microseconds.

    Each of `tenants` has: `limits`, `key_limits` and `model_budgets` (with the amounts `spent` on them, in
    nanodollars), null if the configuration does not set them; `spent` by span, with `tokens`,
    `cost_nanodollars`, and the number of exchanges without a known cost (`unpriced`) or without an end yet
    (`open`); `recorded`, the shard and the time of the newest admission in these spans; and `ring`, with the
    tenant's position `at` as a fraction of the ring, the `shard` at this position, and the shard that
    `affinity: Required` selects (`required`). The result also has the `limit_kinds` of the limits, the
    `shards` on the ring, the `windows`, and the `configuration`, with a `code` if it is not known.

    Raises IndexUnusableError.
    """
    now = time.time_ns() // 1000 if now is None else now
    shards, in_force = _read_logs(questions, ledger)
    configured = _configured_tenants(in_force.document)
    models = _model_names(in_force.document)
    told = {of["tenant"]: of for of in configured if tenant in (None, of["tenant"])}
    has_month = any(_has_monthly_limit(of) for of in told.values())
    windows = _windows(questions, now, _SPANS if has_month else _SPANS[:1])
    for span, window in windows.items():
        _add_spent(questions, tenant, span, window, told, models)
    found = _ring(tuple(shards))
    for name, of in told.items():
        of["ring"] = {
            "at": ring.ring_position(name) / ring.RING_SIZE,
            "shard": found.shard_for(name),
            "required": ring.required_owner(name, shards),
        }
    names = sorted(told)
    return {
        "tenants": [told[name] for name in names[:MAX_TENANTS]],
        "left_out": max(0, len(names) - MAX_TENANTS),
        "limit_kinds": [
            {"field": kind.field, "quantity": kind.quantity, "period": kind.period} for kind in LIMIT_KINDS
        ],
        "shards": shards,
        "windows": {
            span: {"since": format_time(begin), "until": format_time(end), "whole": is_whole}
            for span, (begin, end, is_whole) in windows.items()
        },
        "configuration": {
            "digest": in_force.digest,
            "since": format_time(in_force.since) if in_force.since else None,
            "others": list(in_force.other_digests),
            "beside": (in_force.document or {}).get("tenantShards") is not None,
            "code": in_force.code,
        },
    }


@lru_cache(maxsize=2)
def _ring(shards: tuple[int, ...]) -> ring.HashRing:
    """The ring of these shards, cached so that its points are not computed for each request."""
    return ring.HashRing(shards)


def _read_logs(questions: IndexSnapshot, ledger: Path) -> tuple[list[int], _ActiveConfiguration]:
    """Returns the shards whose newest log is open, and the active configuration."""
    newest: dict[int, tuple[str, bool, bytes | None, int]] = {}
    for log in questions.logs():
        number = log[0].split("/")[-2]
        # Logs are sorted by name, and names ascend with time.
        if number.isascii() and number.isdecimal() and int(number) < 1 << 16:
            newest[int(number)] = log
    live = {shard: log for shard, log in newest.items() if not log[1]}
    named = {(since, digest) for _, _, digest, since in (live or newest).values() if digest is not None}
    if not named:
        return sorted(live), _ActiveConfiguration(code="configuration_not_named")
    since, digest = max(named)
    others = {other.hex() for _, other in named if other != digest}
    found = _ActiveConfiguration(digest.hex(), since, tuple(sorted(others)))
    try:
        document = json.loads(archive.find_configuration(ledger, digest.hex()))
    except archive.ArchiveError as error:
        return sorted(live), replace(found, code=error.code)
    except (OSError, ValueError, RecursionError):
        return sorted(live), replace(found, code="configuration_unreadable")
    if not isinstance(document, dict):
        return sorted(live), replace(found, code="configuration_unreadable")
    if document.get("format") != archive.FORMAT:
        return sorted(live), replace(found, code="configuration_of_earlier_version")
    return sorted(live), replace(found, document=document)


def _configured_tenants(document: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The tenants of a configuration, with their limits only."""
    tenants = (document or {}).get("tenants")
    found = [of for of in tenants if isinstance(of, dict)] if isinstance(tenants, list) else []
    return [
        _empty_tenant(
            of["name"],
            limits=_quota(of.get("limits")),
            key_limits=_quota(of.get("keyLimits")),
            model_budgets=_model_budgets(of.get("modelBudgets")),
        )
        for of in found
        if isinstance(of.get("name"), str)
    ]


def _model_names(document: dict[str, Any] | None) -> frozenset[str]:
    """The names of the models in a configuration."""
    models = (document or {}).get("models")
    found = [of.get("name") for of in models if isinstance(of, dict)] if isinstance(models, list) else []
    return frozenset(name for name in found if isinstance(name, str))


def _configured_model_name(asked: str, models: frozenset[str]) -> str:
    """The configured name of the model that a worker used for a requested name. Budgets have the configured
    name, records the requested one."""
    if asked in models:
        return asked
    wildcards = (name for name in models if name.endswith("*") and asked.startswith(name[:-1]))
    return max(wildcards, key=len, default=asked)


def _empty_tenant(name: str, **configured: Any) -> dict[str, Any]:
    """A tenant without any use added yet; limits are null if the tenant is not in the configuration."""
    nothing: dict[str, Any] = {"limits": None, "key_limits": None, "model_budgets": []}
    return {"tenant": name, **nothing, **configured, "spent": {}, "recorded": None}


def _quota(told: Any) -> dict[str, int]:
    """The limits in a section, by their field names on the admin port; money in nanodollars."""
    told = told if isinstance(told, dict) else {}
    limits = ((kind.field, _limit(kind, told.get(kind.alias))) for kind in LIMIT_KINDS)
    return {field: limit for field, limit in limits if limit is not None}


def _limit(kind: LimitKind, told: Any) -> int | None:
    if kind.is_money:
        return nanodollars(told) if isinstance(told, str) and _DOLLARS.fullmatch(told) else None
    return told if type(told) is int else None


def _model_budgets(told: Any) -> list[dict[str, Any]]:
    found = [of for of in told if isinstance(of, dict)] if isinstance(told, list) else []
    return [{"model": str(of.get("model")), **_quota(of), "spent": {}} for of in found]


def _has_monthly_limit(of: dict[str, Any]) -> bool:
    quotas = (of["limits"], *of["model_budgets"])
    return any(kind.field in quota for kind in LIMIT_KINDS if kind.period == "month" for quota in quotas)


def _windows(questions: IndexSnapshot, now: int, spans: tuple[str, ...]) -> dict[str, tuple[int, int, bool]]:
    """The UTC day and month of a time: start, end (exclusive), and whether the index covers all of it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=now)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight.replace(day=1)
    ends = {
        "day": (midnight, midnight + timedelta(days=1)),
        "month": (first, (first + timedelta(days=31)).replace(day=1)),
    }
    pruned = (questions.pruned_before or 0) * _DAY_MICROSECONDS
    found = {}
    for span in spans:
        begin, end = (int(at.timestamp()) * _MICROSECONDS for at in ends[span])
        found[span] = (max(begin, min(pruned, end - 1)), end, begin >= pruned)
    return found


def _add_spent(
    questions: IndexSnapshot,
    tenant: str | None,
    span: str,
    window: tuple[int, int, bool],
    told: dict[str, dict[str, Any]],
    models: frozenset[str],
) -> None:
    """Adds the use in a window to each tenant in `told`, and adds missing tenants that have admissions."""
    for of in told.values():
        of["spent"][span] = dict.fromkeys(_USAGE_FIELDS, 0)
    asked = Filter(tenant=tenant, since=window[0], until=window[1])
    for name, model, shard, used in usage_by_model(questions, asked):
        if used.newest is None or name is None:
            # Nothing was admitted under this name, so it may not be a tenant's name.
            continue
        tokens = used.prompt_tokens + used.completion_tokens
        figures = (tokens, used.cost, used.unpriced, used.open)
        if name not in told and len(told) >= _MAX_NAMES:
            raise IndexUnusableError(
                f"the result has more than {_MAX_NAMES} tenants: choose one tenant", "bad_filter"
            )
        of = told.setdefault(name, _empty_tenant(name))
        spent = of["spent"].setdefault(span, dict.fromkeys(_USAGE_FIELDS, 0))
        for figure, value in zip(_USAGE_FIELDS, figures, strict=True):
            spent[figure] += int(value)
        counted = _configured_model_name(model, models) if of["model_budgets"] and model else model
        for budget in of["model_budgets"]:
            if budget["model"] == counted:
                budget["spent"][span] = budget["spent"].get(span, 0) + int(figures[1])
        at = format_time(used.newest)
        if of["recorded"] is None or at > of["recorded"]["time"]:
            of["recorded"] = {"shard": shard, "time": at}
