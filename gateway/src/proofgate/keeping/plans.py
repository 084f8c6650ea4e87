"""The plan of a retention job: retention of records and holds, as in a manifest.

This module computes the effects of a plan on the state, and changes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from proofgate.keeping.arguments import UsageError, parse_inclusive_end, parse_timestamp

_MAX_PLAN_BYTES = 1 << 20
_DAY = 86_400_000_000

Days = Annotated[int, Field(ge=0, le=36_500)]
SingleLine = Annotated[str, Field(min_length=1, max_length=512)]


def _before_validator(read: Callable[[str], int]) -> BeforeValidator:
    def microseconds(text: object) -> int:
        try:
            return read(str(text))
        except argparse.ArgumentTypeError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(microseconds)


Timestamp = Annotated[int, _before_validator(parse_timestamp)]
InclusiveEnd = Annotated[int, _before_validator(parse_inclusive_end)]


class _PlanModel(BaseModel):
    """A part of a plan. Unknown fields are refused, because they may say that data must be kept."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True
    )


class Hold(_PlanModel):
    """A hold on the records that match all its fields, or on all records."""

    name: SingleLine
    tenant: SingleLine | None = None
    id: SingleLine | None = None
    since: Timestamp | None = None
    until: InclusiveEnd | None = None
    all: bool = False
    reason: SingleLine
    reference: SingleLine | None = None
    released: SingleLine | None = None

    @property
    def scope(self) -> dict[str, Any]:
        """The scope of the hold in the format of the state."""
        given = {"tenant": self.tenant, "exchange": self.id, "since": self.since, "until": self.until}
        return {name: value for name, value in given.items() if value is not None}

    @model_validator(mode="after")
    def _has_scope(self) -> Self:
        if bool(self.scope) == self.all:
            raise ValueError("a hold needs either all, or at least one of tenant, id, since and until")
        if self.since is not None and self.until is not None and self.since > self.until:
            raise ValueError("since is later than until")
        return self


class TenantRetention(_PlanModel):
    """The retention of a tenant's records, in days; None: no own value."""

    name: SingleLine
    minimum_days: Days | None = None
    maximum_days: Days | None = None


class Retention(_PlanModel):
    """The retention of all records, in days. Without `maximum_days`, records are never removed."""

    minimum_days: Days = 0
    maximum_days: Days | None = None
    tenants: tuple[TenantRetention, ...] = Field(default=(), strict=False)

    def minimum_of(self, tenant: TenantRetention) -> int:
        """The minimum retention of a tenant's records, in days."""
        return max(self.minimum_days, tenant.minimum_days or 0)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.maximum_days is not None and self.maximum_days < self.minimum_days:
            raise ValueError("maximumDays is less than minimumDays")
        if len({tenant.name for tenant in self.tenants}) < len(self.tenants):
            raise ValueError("a tenant is named twice")
        for tenant in self.tenants:
            if tenant.maximum_days is not None and tenant.maximum_days < self.minimum_of(tenant):
                raise ValueError(f"maximumDays of {tenant.name} is less than its minimum")
        return self


class RetentionPlan(_PlanModel):
    """The plan of the retention job. `begin` marks the first run; otherwise `known` is the number of holds in
    the job's state, including released ones. `digest` identifies the plan in a report. `retention_key` is the
    verifying key of the job that may carry out the plan: empty, no job yet; None, any job."""

    digest: SingleLine | None = None
    retention_key: Annotated[str, Field(max_length=512)] | None = None
    begin: bool = False
    known: Annotated[int, Field(ge=0)] | None = None
    #: Maximum days since the start of the newest log. If more days have passed, the job removes nothing.
    quiet_days: Days | None = None
    retention: Retention = Retention()
    holds: tuple[Hold, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _has_begin_or_known(self) -> Self:
        if self.begin == (self.known is not None):
            raise ValueError("a plan needs exactly one of begin and known")
        if len({hold.name for hold in self.holds}) < len(self.holds):
            raise ValueError("a hold is named twice")
        return self

    @property
    def removal(self) -> tuple[int, dict[str, int]] | None:
        """The days after which logs are removed, and the longer retentions of tenants; None: no log is
        removed."""
        days = self.retention.maximum_days
        if days is None:
            return None
        minimums = {
            tenant.name: self.retention.minimum_of(tenant)
            for tenant in self.retention.tenants
            if self.retention.minimum_of(tenant) > days
        }
        return days, minimums

    def erasures(self, now: int) -> dict[str, int]:
        """The tenants whose salts are destroyed, with the end of the period. Days count from midnight UTC, so
        that repeated erasures on one day are signed only once."""
        midnight = now - now % _DAY
        return {
            tenant.name: max(midnight - tenant.maximum_days * _DAY, 0)
            for tenant in sorted(self.retention.tenants, key=lambda tenant: tenant.name)
            if tenant.maximum_days is not None
        }

    @property
    def minimums(self) -> tuple[int, dict[str, int]]:
        """The minimum retention of all records, and of tenants."""
        tenants = {tenant.name: self.retention.minimum_of(tenant) for tenant in self.retention.tenants}
        return self.retention.minimum_days, tenants


@dataclass(frozen=True)
class HoldChanges:
    """The differences between a plan's holds and the state's: holds to add, holds to release (number and
    reason), active holds that are not in the plan (name or `#number`), and holds that differ from the active
    hold of the same name."""

    to_add: tuple[Hold, ...]
    to_release: tuple[tuple[int, str], ...]
    outside_plan: tuple[str, ...]
    changed: tuple[str, ...]


def read(path: Path) -> tuple[RetentionPlan, str]:
    """Reads the plan in a file. Also returns its identifier in reports: its `digest`, or else the digest of
    its text.

    Raises UsageError; no text of the file is repeated.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_PLAN_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if len(text) > _MAX_PLAN_BYTES:
        raise UsageError(f"{path} is larger than {_MAX_PLAN_BYTES} bytes")
    try:
        plan = RetentionPlan.model_validate_json(text)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        told = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'plan'}: {fault['msg']}" for fault in faults)
        raise UsageError(f"{path} is not a valid plan: {told}") from None
    return plan, plan.digest or hashlib.sha256(text).hexdigest()[:16]


def hold_changes(planned: Iterable[Hold], state: Iterable[Mapping[str, Any]]) -> HoldChanges:
    """Computes the changes of holds. A hold that was removed from the plan stays active."""
    active = [hold for hold in state if "released" not in hold]
    named = {hold["name"]: hold for hold in active if "name" in hold}
    add: list[Hold] = []
    release: list[tuple[int, str]] = []
    changed: list[str] = []
    known = set()
    for hold in planned:
        known.add(hold.name)
        held = named.get(hold.name)
        if held is None:
            if hold.released is None:
                add.append(hold)
        elif held["scope"] != hold.scope:
            changed.append(hold.name)
        elif hold.released is not None:
            release.append((held["id"], hold.released))
    outside = [hold.get("name") or f"#{hold['id']}" for hold in active if hold.get("name") not in known]
    return HoldChanges(tuple(add), tuple(release), tuple(outside), tuple(changed))
