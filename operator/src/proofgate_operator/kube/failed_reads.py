"""Currently failing reads: since when they fail, until when the last known state applies, and when to
retry."""

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from proofgate_operator.kube.reads import ReadFailed, ReadOutcome, ReadRequest
from proofgate_operator.kube.resources import resource_name
from proofgate_operator.plan.unreadable_resources import (
    GRACE_SECONDS,
    UnreadableReason,
    UnreadableResource,
    parse_user,
)

_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 15.0


@dataclass
class _FailedRead:
    expires_at: float
    expires_at_wall: float
    failure: ReadFailed
    retry_at: float = 0.0
    attempts: int = 0


class FailedReads:
    """Failing reads by owner (who needs the read) and request. `clock` returns monotonic seconds and measures
    durations; `wall` returns seconds since 1970, for people and for the next process."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.clock = clock
        self.wall = wall
        self._of: dict[str, dict[ReadRequest, _FailedRead]] = {}

    def elapsed(self, since: float | None) -> float:
        """Return how many seconds of a hold have passed that an earlier process started at `since` (seconds
        since 1970; None: no hold). A restart does not move the end of a hold."""
        return 0.0 if since is None else min(max(self.wall() - since, 0.0), GRACE_SECONDS)

    def record_failure(
        self, owner: str, failure: ReadFailed, since: float | None = None
    ) -> UnreadableResource:
        """Record a failed read; return its description with the end of its hold. `since` is the parameter of
        `elapsed`."""
        now, held = self.clock(), self._of.setdefault(owner, {})
        hold = held.get(failure.read)
        if hold is None:
            left = GRACE_SECONDS - self.elapsed(since)
            hold = held[failure.read] = _FailedRead(now + left, self.wall() + left, failure)
        hold.failure = failure
        pause = min(_FIRST_PAUSE_SECONDS * (1 << min(hold.attempts, 8)), _MAX_PAUSE_SECONDS)
        hold.attempts += 1
        hold.retry_at = now + max(pause * random.uniform(1, 1.2), failure.retry_after or 0.0)
        if now < hold.expires_at:
            # The end of a hold is only reported once it has passed.
            hold.retry_at = min(hold.retry_at, hold.expires_at)
        return describe_failed_read(failure, hold.expires_at_wall, over=now >= hold.expires_at)

    def has_failures(self, owner: str) -> bool:
        """Return whether a failed read is recorded for `owner`, including expired holds."""
        return owner in self._of

    def is_retry_due(self, owner: str) -> bool:
        """Return whether a failed read of `owner` has to be retried now."""
        now = self.clock()
        return any(now >= hold.retry_at for hold in self._of.get(owner, {}).values())

    def retain(self, owner: str, reads: Collection[ReadRequest] = ()) -> None:
        """Forget the failed reads of `owner` except these: the others succeeded, or are no longer needed."""
        left = {read: hold for read, hold in self._of.get(owner, {}).items() if read in reads}
        if left:
            self._of[owner] = left
        else:
            self._of.pop(owner, None)


def describe_failed_read(
    failure: ReadFailed, until: float | None = None, *, over: bool = False
) -> UnreadableResource:
    """Describe a failed read. Without `until`, the last known state applies without an end."""
    reason = UnreadableReason.UNAVAILABLE
    if failure.outcome is ReadOutcome.ACCESS_DENIED:
        reason = UnreadableReason.ACCESS_DENIED
    return UnreadableResource(
        UnreadableReason.GRACE_ENDED if over else reason,
        failure.read.verb,
        resource_name(failure.read.kind),
        failure.read.namespace,
        f"{failure.status} {failure.reason}",
        parse_user(failure.message),
        until,
    )
