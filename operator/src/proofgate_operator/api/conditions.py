"""Conditions of a gateway, each with a reason and a message.

A condition's `lastTransitionTime` changes only with its status, so writing the same state twice writes the
same bytes (KEP-1623).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ConditionType(StrEnum):
    """All conditions of a gateway. Audited is only present with an auditor, Kept only with a retention job,
    and the last two only while they are True."""

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


#: Conditions that kstatus (and so Flux and others) reads: present only while they are True.
ABNORMAL_CONDITIONS = frozenset({ConditionType.RECONCILING, ConditionType.STALLED})


class ConditionStatus(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


#: The maximum length of a condition's message in the API.
MAX_MESSAGE = 32768


@dataclass(frozen=True)
class Condition:
    """One condition: `type` has the status `status`, for the reason `reason`, explained in `message`."""

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
    """Return `current` as API objects; an unchanged status keeps its transition time.

    `now` is an RFC 3339 time in UTC with seconds; `generation` is the generation of the observed spec.
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
