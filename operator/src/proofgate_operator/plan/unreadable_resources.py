"""Failed reads of objects: what they read, and for how long the last known state applies.

The API server that refuses, or does not answer, says nothing of the object: it may be there, unchanged. So
what was known stays in force. Not without an end where it lets somebody in: a key that was taken away
meanwhile would work for as long as nobody may look.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from proofgate_operator.api.conditions import ConditionStatus
from proofgate_operator.plan.rfc3339 import seconds_of, time_of

#: How long keys are let in that nobody may look at. A grant that is replaced is back in seconds, one that has
#: to be asked for in minutes; and nobody should wait for the end of a leaked key for longer.
GRACE_SECONDS = 15 * 60
#: Of 403, who asked: an account of the cluster, which the API server tells.
_USER_PATTERN = re.compile(r'User "([A-Za-z0-9:._@-]{1,253})"')


class UnreadableReason(StrEnum):
    """Reason of a condition that reports a failed read."""

    #: The API server refuses (401, 403), or does not know the kind (404).
    MAY_NOT_LOOK = "MayNotLook"
    #: It is overloaded, ill or away.
    UNAVAILABLE = "Unavailable"
    #: Either, for so long that what was known is in force no more.
    HOLD_ENDED = "HoldEnded"


#: Reasons with which what was known stays in force.
CACHED_DATA_IN_USE_REASONS = frozenset({UnreadableReason.MAY_NOT_LOOK, UnreadableReason.UNAVAILABLE})


@dataclass(frozen=True)
class UnreadableResource:
    """A failed read: its verb, resource (as kubectl names it) and namespace (None: all), what the API server
    said, and `until` when the last known state applies (seconds since 1970; None: without an end)."""

    reason: UnreadableReason
    verb: str
    resource: str
    namespace: str | None
    error: str
    user: str = ""
    expires_at: float | None = None

    @property
    def is_expired(self) -> bool:
        """Whether what was known is in force no more."""
        return self.reason is UnreadableReason.HOLD_ENDED

    @property
    def message(self) -> str:
        """What cannot be read, what holds meanwhile, and what helps."""
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        minutes = f"{GRACE_SECONDS // 60} minutes"
        if self.is_expired:
            held = f"cached data was used for {minutes} and has expired"
        elif self.expires_at is None:
            held = "cached data stays in use"
        else:
            held = f"cached data is used until {time_of(self.expires_at)}"
        scope = f"-n {self.namespace}" if self.namespace else "-A"
        who = f" --as={self.user}" if self.user else ""
        check = f"kubectl auth can-i {self.verb} {self.resource} {scope}{who}"
        return f"cannot {self.verb} {self.resource} {where} ({self.error}): {held}; check with `{check}`"


def parse_user(message: str) -> str:
    """Return the account that the API server's words refuse; empty where they name none."""
    found = _USER_PATTERN.search(message)
    return found[1] if found else ""


def hold_started_at(conditions: Iterable[Mapping[str, Any]], kind: str) -> float | None:
    """Return since when a condition says that what was known counts, in seconds since 1970; None if it does
    not say so. An operator that starts goes on from there."""
    for found in conditions:
        told = found["type"] == kind and found.get("status") == ConditionStatus.UNKNOWN
        if told and found.get("reason") in CACHED_DATA_IN_USE_REASONS:
            return seconds_of(found.get("lastTransitionTime"))
    return None
