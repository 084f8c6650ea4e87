"""Failed reads of objects: the request, and how long the last known state applies.

A refusal or a missing answer of the API server does not mean that the object is gone or changed, so the last
known state stays in force. Where that state grants access, it expires: otherwise a key that was removed
meanwhile would work for as long as reads fail.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from proofgate_operator.api.conditions import ConditionStatus
from proofgate_operator.plan.rfc3339 import seconds_of, time_of

#: Seconds for which unreadable keys are still accepted. A replaced permission is back in seconds, one that
#: has to be requested in minutes; and the revocation of a leaked key should not take longer.
GRACE_SECONDS = 15 * 60
#: The account of a 403 that the API server names.
_USER_PATTERN = re.compile(r'User "([A-Za-z0-9:._@-]{1,253})"')


class UnreadableReason(StrEnum):
    """The reason of a condition that reports a failed read."""

    #: The API server refuses (401, 403), or does not serve the kind (404).
    ACCESS_DENIED = "MayNotLook"
    #: The API server is overloaded, failing or unreachable.
    UNAVAILABLE = "Unavailable"
    #: One of the above for so long that the last known state has expired.
    GRACE_ENDED = "HoldEnded"


#: Reasons for which the last known state stays in force.
CACHED_DATA_IN_USE_REASONS = frozenset({UnreadableReason.ACCESS_DENIED, UnreadableReason.UNAVAILABLE})


@dataclass(frozen=True)
class UnreadableResource:
    """A failed read: its verb, resource (kubectl's name) and namespace (None: all), the API server's message,
    and the expiry of the last known state (seconds since 1970; None: no expiry)."""

    reason: UnreadableReason
    verb: str
    resource: str
    namespace: str | None
    error: str
    user: str = ""
    expires_at: float | None = None

    @property
    def is_expired(self) -> bool:
        """Whether the last known state has expired."""
        return self.reason is UnreadableReason.GRACE_ENDED

    @property
    def message(self) -> str:
        """A description of the unreadable resource, the state that applies meanwhile, and a remedy."""
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
    """Return the account in the API server's refusal; empty if it names none."""
    found = _USER_PATTERN.search(message)
    return found[1] if found else ""


def hold_started_at(conditions: Iterable[Mapping[str, Any]], kind: str) -> float | None:
    """Return since when a condition reports that the last known state applies, in seconds since 1970; None if
    it does not. A restarted operator continues from that time."""
    for found in conditions:
        told = found["type"] == kind and found.get("status") == ConditionStatus.UNKNOWN
        if told and found.get("reason") in CACHED_DATA_IN_USE_REASONS:
            return seconds_of(found.get("lastTransitionTime"))
    return None
