"""A status as text for a terminal: a line that sums up, then tables. Nothing here reads anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from proofgate_schema.counts import counted

from proofgate.limit_kinds import LIMIT_KINDS, LimitKind
from proofgate.status.seen import Gateway, Key, Limits, Log, Tenant, Used, Worker

#: Of thousands, a terminal shows so many; who has trouble is among the first.
TENANTS_SHOWN = 40
_NOTHING = "-"
_DIGEST_SHOWN = 8
_SPANS = (("d", 86_400), ("h", 3600), ("m", 60))
_COUNTED = tuple(kind for kind in LIMIT_KINDS if not kind.is_money)
_UNITS = (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))
_WRITTEN_OUT = 10_000


def of_gateway(gateway: Gateway, now: datetime) -> str:
    """A gateway, as tables."""
    return "\n\n".join(_shown(part) for part in _parts(gateway, now) if part) + "\n"


def of_worker(worker: Worker) -> str:
    """A worker, as facts."""
    refused = (
        f"{_NOTHING} requests" if worker.limit_refusals is None else counted(worker.limit_refusals, "request")
    )
    written, synced = worker.log.size, worker.durable
    records = f"{written} written, {synced} synced, {worker.checkpointed} covered by a checkpoint"
    facts = [
        ("worker", f"{worker.shard}, {worker.not_ready or 'Ready'}, {worker.address}"),
        ("log", worker.log.origin),
        ("records", records),
        ("exchanges", f"{worker.in_flight} in flight, on {counted(worker.connections, 'connection')}"),
        ("limits", f"{refused} refused since the start"),
        ("configuration", worker.config_digest[:_DIGEST_SHOWN]),
        *(("problem", line) for line in worker.trouble),
    ]
    parts = [_table(facts), _limits(worker.limits)]
    return "\n\n".join(_shown(part) for part in parts if part) + "\n"


def _shown(lines: Iterable[str]) -> str:
    """Lines, without what would steer a terminal: some words are of whoever runs a pod or a tenant."""
    return "\n".join("".join(mark if mark.isprintable() else " " for mark in line) for line in lines)


def _parts(gateway: Gateway, now: datetime) -> Iterator[list[str]]:
    ready = gateway.ready
    state = ready.reason if ready else "no status yet (does an operator serve this namespace?)"
    count = f"{gateway.ready_workers} of {gateway.workers} workers ready"
    facts = [f"{gateway.namespace}/{gateway.name}: {state}", count, *filter(None, [gateway.endpoint])]
    yield [", ".join(facts), *(f"note: {note}" for note in gateway.notes)]
    yield _table(
        [
            (item.type, item.status, item.reason, _since(item.since, now), item.message)
            for item in gateway.conditions
        ],
        ("CONDITION", "STATUS", "REASON", "FOR", "MESSAGE"),
    )
    yield _table(
        [
            (
                str(shard.ordinal),
                shard.phase,
                (shard.config_digest or _NOTHING)[:_DIGEST_SHOWN],
                *_log(shard.log),
                shard.message,
            )
            for shard in gateway.shards
        ],
        ("WORKER", "PHASE", "CONFIG", "RECORDS", "LOG", "MESSAGE"),
    )
    shown = gateway.tenants[:TENANTS_SHOWN]
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
    unowned = _NOTHING if tenant.trouble else "by ring"
    worker = unowned if tenant.worker is None else str(tenant.worker)
    keys = ", ".join(_key(key, now) for key in tenant.keys) or "none"
    return tenant.name, worker, tenant.plan or _NOTHING, keys, tenant.trouble or "ok"


def _limits(limits: Limits | None) -> list[str]:
    if limits is None:
        return []
    known = sorted((*limits.tenants, *limits.namespaces), key=lambda one: (-one.part, one.tenant))
    shown = known[:TENANTS_SHOWN]
    hidden = len(known) - len(shown) + limits.more + limits.more_namespaces
    # A terminal is not wide enough for limits that nobody shown has.
    kinds = [kind for kind in _COUNTED if any(tenant.limits[kind.field] for tenant in shown)]
    rows = [(tenant.tenant, *(_used(tenant.limits[kind.field]) for kind in kinds)) for tenant in shown]
    heading: tuple[str, ...] = ("LIMITS USED", *map(_heading, kinds))
    if any(tenant.budget for tenant in shown):
        rows = [(*row, _part(tenant.budget)) for row, tenant in zip(rows, shown, strict=True)]
        heading = (*heading, "BUDGET")
    return [
        *(_table(rows, heading) or ["no tenant has limits"]),
        *([f"and {hidden} more with lower use"] if hidden else []),
    ]


def _heading(kind: LimitKind) -> str:
    if kind.period == "now":
        return "IN FLIGHT"
    return f"{kind.quantity}/{'min' if kind.period == 'minute' else kind.period}".upper()


def _used(limit: Used | None) -> str:
    return f"{_short(limit.used)}/{_short(limit.limit)} {limit.percent}%" if limit else _NOTHING


def _part(budget: Used | None) -> str:
    return f"{budget.percent}%" if budget else _NOTHING


def _short(number: int) -> str:
    """A number in five characters, cut and not rounded: what is not used up is not shown so."""
    if number < _WRITTEN_OUT:
        return str(number)
    unit, size = next((unit, size) for unit, size in _UNITS if number >= size)
    whole, tenths = divmod(number * 10 // size, 10)
    return f"{whole}.{tenths}{unit}" if tenths and whole < 100 else f"{whole}{unit}"


def _key(key: Key, now: datetime) -> str:
    if key.not_after is None:
        return key.name
    ends = _time(key.not_after)
    return f"{key.name} ({'expired' if ends is not None and ends <= now else f'until {key.not_after}'})"


def _log(log: Log | None) -> tuple[str, str]:
    return (str(log.size), log.origin) if log else (_NOTHING, _NOTHING)


def _since(text: str, now: datetime) -> str:
    """How long ago a time was, in its largest unit."""
    time = _time(text)
    if time is None:
        return _NOTHING
    seconds = max(0, int((now - time).total_seconds()))
    return next((f"{seconds // span}{unit}" for unit, span in _SPANS if seconds >= span), f"{seconds}s")


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None


def _table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = ()) -> list[str]:
    """Rows in columns as wide as they have to be, under a head; nothing without rows."""
    if not rows:
        return []
    lines = [head, *rows] if head else list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
