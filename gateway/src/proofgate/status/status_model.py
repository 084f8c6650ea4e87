"""What there is to know of a gateway or a worker, in the words in which it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from proofgate.limit_kinds import LIMIT_KINDS


@dataclass(frozen=True)
class Condition:
    """A condition of an object. `since` is RFC 3339; "" where nobody said."""

    type: str
    status: str
    reason: str
    message: str
    since: str


@dataclass(frozen=True)
class LogHead:
    """The newest head of a worker's log that is known: whose it is, and how many records it covers."""

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
    """Who may use a gateway.

    `worker` is the ordinal of its owner; None where nobody but HAProxy's ring decides. `trouble` is what is
    wrong with it, "" when nothing is.
    """

    name: str
    plan: str | None
    keys: tuple[ApiKey, ...]
    worker: int | None
    trouble: str


@dataclass(frozen=True)
class LimitUsage:
    """How much of one limit is used. It can be more than the limit, when that became smaller."""

    used: int
    limit: int

    @property
    def percent(self) -> int:
        """The part that is used, cut to a whole number."""
        return self.used * 100 // self.limit


@dataclass(frozen=True)
class TenantLimits:
    """What a tenant has used of each of its limits, by their fields on the admin port; None where there is no
    such limit."""

    tenant: str
    limits: Mapping[str, LimitUsage | None]

    @property
    def budget(self) -> LimitUsage | None:
        """Of the budgets in money, the one of which the greater part is used."""
        budgets = (self.limits[kind.field] for kind in LIMIT_KINDS if kind.is_money)
        return max(filter(None, budgets), key=lambda budget: budget.used / budget.limit, default=None)

    @property
    def max_used_share(self) -> float:
        """The greatest part of a limit that is used."""
        return max((limit.used / limit.limit for limit in self.limits.values() if limit), default=0.0)


@dataclass(frozen=True)
class Limits:
    """Tenants that have limits, most used first; `more` of them are left out, because these are used more.

    `namespaces` are the limits that tenants of one namespace share by a plan, named `<namespace>/* (<plan>)`.
    """

    tenants: tuple[TenantLimits, ...]
    more: int
    namespaces: tuple[TenantLimits, ...] = ()
    more_namespaces: int = 0


@dataclass(frozen=True)
class Fault:
    """A fault of an object that the spec references, and who is affected."""

    field: str
    reason: str
    message: str


@dataclass(frozen=True)
class Gateway:
    """A GovernanceGateway as the operator reports it. `notes` list what could not be read.

    `limits` are None where no worker was asked.
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
        """The condition that sums up the others; None before the operator has looked."""
        return next((item for item in self.conditions if item.type == "Ready"), None)

    @property
    def is_healthy(self) -> bool:
        """Whether the state matches the spec."""
        return self.ready is not None and self.ready.status == "True"


@dataclass(frozen=True)
class Worker:
    """One worker as its admin port reports it.

    Counts of records are of its log: written, synced, covered by the newest checkpoint. `limit_refusals` are
    requests over a limit since it started. `trouble` are what it is not ready for and what it warns of.
    `limits` are None without the admin token.
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
        """Whether it wants traffic."""
        return self.not_ready is None


def as_json(seen: Gateway | Worker) -> dict[str, Any]:
    """What is seen, as JSON has it: a tenant's limits are members beside its name."""
    return asdict(seen, dict_factory=_members)


def _members(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if "tenant" in found and "limits" in found:
        found |= found.pop("limits")
    return found
