"""Formats a status as text for a terminal: a summary line, then tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from proofgate_schema.counts import format_count

from proofgate.limit_kinds import LIMIT_KINDS, LimitKind
from proofgate.status.status_model import ApiKey, Gateway, Limits, LimitUsage, LogHead, Tenant, Worker

#: Maximum number of tenants in a table. Tenants with problems are among the first.
MAX_DISPLAYED_TENANTS = 40
_EMPTY_CELL = "-"
_DISPLAYED_DIGEST_LENGTH = 8
_TIME_UNITS = (("d", 86_400), ("h", 3600), ("m", 60))
_COUNTED_KINDS = tuple(kind for kind in LIMIT_KINDS if not kind.is_money)
_NUMBER_UNITS = (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))
_MAX_FULL_NUMBER = 10_000


def format_gateway(gateway: Gateway, now: datetime) -> str:
    """Formats a gateway as tables."""
    return "\n\n".join(_sanitize(part) for part in _sections(gateway, now) if part) + "\n"


def format_worker(worker: Worker) -> str:
    """Formats a worker as a list of facts."""
    refused = (
        f"{_EMPTY_CELL} requests"
        if worker.limit_refusals is None
        else format_count(worker.limit_refusals, "request")
    )
    written, synced = worker.log.size, worker.durable
    records = f"{written} written, {synced} synced, {worker.checkpointed} covered by a checkpoint"
    facts = [
        ("worker", f"{worker.shard}, {worker.not_ready or 'Ready'}, {worker.address}"),
        ("log", worker.log.origin),
        ("records", records),
        ("exchanges", f"{worker.in_flight} in flight, on {format_count(worker.connections, 'connection')}"),
        ("limits", f"{refused} refused since the start"),
        ("configuration", worker.config_digest[:_DISPLAYED_DIGEST_LENGTH]),
        *(("problem", line) for line in worker.trouble),
    ]
    parts = [_table(facts), _limits(worker.limits)]
    return "\n\n".join(_sanitize(part) for part in parts if part) + "\n"


def _sanitize(lines: Iterable[str]) -> str:
    """Joins lines, without characters that could control a terminal, because some texts come from pods or
    tenants."""
    return "\n".join("".join(mark if mark.isprintable() else " " for mark in line) for line in lines)


def _sections(gateway: Gateway, now: datetime) -> Iterator[list[str]]:
    ready = gateway.ready
    state = ready.reason if ready else "no status yet (does an operator serve this namespace?)"
    count = f"{gateway.ready_workers} of {gateway.workers} workers ready"
    facts = [f"{gateway.namespace}/{gateway.name}: {state}", count, *filter(None, [gateway.endpoint])]
    yield [", ".join(facts), *(f"note: {note}" for note in gateway.notes)]
    yield _table(
        [
            (item.type, item.status, item.reason, _age(item.since, now), item.message)
            for item in gateway.conditions
        ],
        ("CONDITION", "STATUS", "REASON", "FOR", "MESSAGE"),
    )
    yield _table(
        [
            (
                str(shard.ordinal),
                shard.phase,
                (shard.config_digest or _EMPTY_CELL)[:_DISPLAYED_DIGEST_LENGTH],
                *_log(shard.log),
                shard.message,
            )
            for shard in gateway.shards
        ],
        ("WORKER", "PHASE", "CONFIG", "RECORDS", "LOG", "MESSAGE"),
    )
    shown = gateway.tenants[:MAX_DISPLAYED_TENANTS]
    hidden = len(gateway.tenants) - len(shown)
    yield [
        *_table([_tenant(tenant, now) for tenant in shown], ("TENANT", "WORKER", "PLAN", "KEYS", "STATE")),
        *([f"and {hidden} more: --output json lists all"] if hidden else []),
    ]
    yield _limits(gateway.limits)
    yield _table(
        [(fault.field, fault.reason, fault.message) for fault in gateway.faults],
        ("FAULT", "REASON", "MESSAGE"),
    )
    yield [f"verifying key: {gateway.verifying_key}"] if gateway.verifying_key else []


def _tenant(tenant: Tenant, now: datetime) -> tuple[str, ...]:
    unowned = _EMPTY_CELL if tenant.trouble else "by ring"
    worker = unowned if tenant.worker is None else str(tenant.worker)
    keys = ", ".join(_key(key, now) for key in tenant.keys) or "none"
    return tenant.name, worker, tenant.plan or _EMPTY_CELL, keys, tenant.trouble or "ok"


def _limits(limits: Limits | None) -> list[str]:
    if limits is None:
        return []
    known = sorted((*limits.tenants, *limits.namespaces), key=lambda one: (-one.max_used_share, one.tenant))
    shown = known[:MAX_DISPLAYED_TENANTS]
    hidden = len(known) - len(shown) + limits.more + limits.more_namespaces
    # Columns for limits that no shown tenant has are omitted, because a terminal is narrow.
    kinds = [kind for kind in _COUNTED_KINDS if any(tenant.limits[kind.field] for tenant in shown)]
    rows = [
        (tenant.tenant, *(_format_usage(tenant.limits[kind.field]) for kind in kinds)) for tenant in shown
    ]
    heading: tuple[str, ...] = ("LIMITS USED", *map(_heading, kinds))
    if any(tenant.budget for tenant in shown):
        rows = [(*row, _budget_share(tenant.budget)) for row, tenant in zip(rows, shown, strict=True)]
        heading = (*heading, "BUDGET")
    return [
        *(_table(rows, heading) or ["no tenant has limits"]),
        *([f"and {hidden} more with lower use"] if hidden else []),
    ]


def _heading(kind: LimitKind) -> str:
    if kind.period == "now":
        return "IN FLIGHT"
    return f"{kind.quantity}/{'min' if kind.period == 'minute' else kind.period}".upper()


def _format_usage(limit: LimitUsage | None) -> str:
    return f"{_abbreviate(limit.used)}/{_abbreviate(limit.limit)} {limit.percent}%" if limit else _EMPTY_CELL


def _budget_share(budget: LimitUsage | None) -> str:
    return f"{budget.percent}%" if budget else _EMPTY_CELL


def _abbreviate(number: int) -> str:
    """Formats a number in five characters, rounded down, so that a limit never looks used up too early."""
    if number < _MAX_FULL_NUMBER:
        return str(number)
    unit, size = next((unit, size) for unit, size in _NUMBER_UNITS if number >= size)
    whole, tenths = divmod(number * 10 // size, 10)
    return f"{whole}.{tenths}{unit}" if tenths and whole < 100 else f"{whole}{unit}"


def _key(key: ApiKey, now: datetime) -> str:
    if key.not_after is None:
        return key.name
    ends = _time(key.not_after)
    return f"{key.name} ({'expired' if ends is not None and ends <= now else f'until {key.not_after}'})"


def _log(log: LogHead | None) -> tuple[str, str]:
    return (str(log.size), log.origin) if log else (_EMPTY_CELL, _EMPTY_CELL)


def _age(text: str, now: datetime) -> str:
    """Formats the age of a time in its largest unit."""
    time = _time(text)
    if time is None:
        return _EMPTY_CELL
    seconds = max(0, int((now - time).total_seconds()))
    return next((f"{seconds // span}{unit}" for unit, span in _TIME_UNITS if seconds >= span), f"{seconds}s")


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None


def _table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = ()) -> list[str]:
    """Formats rows in columns of the necessary width, under a header; empty without rows."""
    if not rows:
        return []
    lines = [head, *rows] if head else list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
