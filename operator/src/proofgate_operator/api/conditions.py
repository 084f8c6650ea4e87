"""Conditions: what is true of a gateway, each with a reason and a sentence.

A condition's `lastTransitionTime` moves only when its status does, so writing the same facts twice writes the
same bytes (KEP-1623).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ConditionType(StrEnum):
    """Every condition a gateway carries, from its first visit on; Audited only with an auditor, Kept
    only with a retention job, the last two only while they hold."""

    READY = "Ready"
    AVAILABLE = "Available"
    CONFIG_VALID = "ConfigValid"
    RESOLVED_REFS = "ResolvedRefs"
    STORAGE_BOUND = "StorageBound"
    WORKERS_AVAILABLE = "WorkersAvailable"
    LOAD_BALANCER_AVAILABLE = "LoadBalancerAvailable"
    PROGRESSING = "Progressing"
    SCALING_SAFE = "ScalingSafe"
    CPU_PINNED = "CPUPinned"
    AUDITED = "Audited"
    KEPT = "Kept"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


#: What kstatus reads, and with it Flux and others: conditions that are there only while they are True.
ABNORMAL_CONDITIONS = frozenset({ConditionType.RECONCILING, ConditionType.STALLED})


class ConditionStatus(StrEnum):
    """Truth of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


#: Longest message the API accepts in a condition.
MAX_MESSAGE = 32768


@dataclass(frozen=True)
class Condition:
    """One fact: `type` is `status` because of `reason`, in words `message`."""

    type: StrEnum
    status: ConditionStatus
    reason: str
    message: str

    @property
    def is_true(self) -> bool:
        """Whether the condition is True."""
        return self.status is ConditionStatus.TRUE


def merge_conditions(
    previous: Iterable[Mapping[str, Any]], current: Iterable[Condition], generation: int, now: str
) -> list[dict[str, Any]]:
    """Return `current` as API objects, keeping the transition time of every status that did not change.

    `now` is an RFC 3339 time in UTC with seconds; `generation` is the spec that was looked at.
    """
    before = {condition["type"]: condition for condition in previous}
    merged = []
    for condition in current:
        old = before.get(condition.type)
        unchanged = old is not None and old.get("status") == condition.status and "lastTransitionTime" in old
        merged.append(
            {
                "type": str(condition.type),
                "status": condition.status.value,
                "reason": str(condition.reason),
                "message": condition.message[:MAX_MESSAGE],
                "observedGeneration": generation,
                "lastTransitionTime": old["lastTransitionTime"] if unchanged and old else now,
            }
        )
    return merged
