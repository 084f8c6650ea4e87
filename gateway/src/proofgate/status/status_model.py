"""The data types of a gateway's or a worker's status, with names as in the output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from proofgate.limit_kinds import LIMIT_KINDS


@dataclass(frozen=True)
class Condition:
    """A condition of an object. `since` is RFC 3339; "" if it is unknown."""

    type: str
    status: str
    reason: str
    message: str
    since: str


@dataclass(frozen=True)
class LogHead:
    """The newest known head of a worker's log: its origin, and the number of records that it covers."""

    origin: str
    size: int


@dataclass(frozen=True)
class Shard:
    """A worker of a gateway."""

    ordinal: int
    phase: str
    config_digest: str | None
    log: LogHead | None
    message: str


@dataclass(frozen=True)
class ApiKey:
    """An API key of a tenant, by its name. `not_after` is RFC 3339; None for one that does not expire."""

    name: str
    not_after: str | None


@dataclass(frozen=True)
class Tenant:
    """A tenant of a gateway.

    `worker` is the ordinal of the worker that owns the tenant; None if only HAProxy's ring decides. `trouble`
    is the tenant's problem, "" if there is none.
    """

    name: str
    plan: str | None
    keys: tuple[ApiKey, ...]
    worker: int | None
    trouble: str


@dataclass(frozen=True)
class LimitUsage:
    """The used amount of one limit. It can exceed the limit after the limit was lowered."""

    used: int
    limit: int

    @property
    def percent(self) -> int:
        """The used percentage, rounded down."""
        return self.used * 100 // self.limit


@dataclass(frozen=True)
class TenantLimits:
    """The used amounts of a tenant's limits, by field name on the admin port; None for a limit that is not
    set."""

    tenant: str
    limits: Mapping[str, LimitUsage | None]

    @property
    def budget(self) -> LimitUsage | None:
        """The budget in money with the highest used share; None without one."""
        budgets = (self.limits[kind.field] for kind in LIMIT_KINDS if kind.is_money)
        return max(filter(None, budgets), key=lambda budget: budget.used / budget.limit, default=None)

    @property
    def max_used_share(self) -> float:
        """The highest used share of all limits."""
        return max((limit.used / limit.limit for limit in self.limits.values() if limit), default=0.0)


@dataclass(frozen=True)
class Limits:
    """Tenants with limits, sorted by use, highest first. `more` is the number of omitted tenants, which have
    used less.

    `namespaces` are the limits that tenants of one namespace share by a plan, named `<namespace>/* (<plan>)`.
    """

    tenants: tuple[TenantLimits, ...]
    more: int
    namespaces: tuple[TenantLimits, ...] = ()
    more_namespaces: int = 0


@dataclass(frozen=True)
class Fault:
    """A fault of an object that the spec references."""

    field: str
    reason: str
    message: str


@dataclass(frozen=True)
class Gateway:
    """A GovernanceGateway as the operator reports it. `notes` list what could not be read.

    `limits` has the value None if no worker was queried.
    """

    namespace: str
    name: str
    endpoint: str | None
    workers: int
    ready_workers: int
    conditions: tuple[Condition, ...]
    shards: tuple[Shard, ...]
    tenants: tuple[Tenant, ...]
    faults: tuple[Fault, ...]
    verifying_key: str | None
    notes: tuple[str, ...]
    limits: Limits | None = None

    @property
    def ready(self) -> Condition | None:
        """The condition that summarises the others; None before the operator has set it."""
        return next((item for item in self.conditions if item.type == "Ready"), None)

    @property
    def is_healthy(self) -> bool:
        """Whether the state matches the spec."""
        return self.ready is not None and self.ready.status == "True"


@dataclass(frozen=True)
class Worker:
    """One worker as its admin port reports it.

    `log.size`, `durable` and `checkpointed` are the numbers of written records, synced records and records
    under the newest checkpoint. `limit_refusals` is the number of requests over a limit since the start.
    `trouble` has the reasons for not being ready, and warnings. `limits` has the value None without the admin
    token.
    """

    address: str
    shard: int
    not_ready: str | None
    in_flight: int
    connections: int
    limit_refusals: int | None
    log: LogHead
    durable: int
    checkpointed: int
    config_digest: str
    trouble: tuple[str, ...]
    limits: Limits | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether the worker is ready for traffic."""
        return self.not_ready is None


def as_json(seen: Gateway | Worker) -> dict[str, Any]:
    """Returns the status in the JSON format, in which a tenant's limits are members beside its name."""
    return asdict(seen, dict_factory=_members)


def _members(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if "tenant" in found and "limits" in found:
        found |= found.pop("limits")
    return found
