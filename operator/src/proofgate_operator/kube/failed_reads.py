"""Reads that fail at the moment: since when, until when the last known state applies, and when to read again."""

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
    """Holds by who needs the read, and the read. `clock` is monotonic seconds, which measure them; `wall`
    are seconds since 1970, for people and for the process that follows."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.clock = clock
        self.wall = wall
        self._of: dict[str, dict[ReadRequest, _FailedRead]] = {}

    def elapsed(self, since: float | None) -> float:
        """Return how much of a hold is over that an earlier process began at `since` (seconds since 1970): a
        restart does not move its end."""
        return 0.0 if since is None else min(max(self.wall() - since, 0.0), GRACE_SECONDS)

    def record_failure(
        self, owner: str, failure: ReadFailed, since: float | None = None
    ) -> UnreadableResource:
        """Record that a read failed; return what applies now. `since` is as `spent` takes it."""
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
            # What is over is said when it is.
            hold.retry_at = min(hold.retry_at, hold.expires_at)
        return describe_failed_read(failure, hold.expires_at_wall, over=now >= hold.expires_at)

    def has_failures(self, owner: str) -> bool:
        """Return whether anything is held for `owner`, or was until it ended."""
        return owner in self._of

    def is_retry_due(self, owner: str) -> bool:
        """Return whether it is time to look again at anything that `owner` needs."""
        now = self.clock()
        return any(now >= hold.retry_at for hold in self._of.get(owner, {}).values())

    def retain(self, owner: str, reads: Collection[ReadRequest] = ()) -> None:
        """Forget what is held for `owner` but for these reads: the others were looks, or are not needed."""
        left = {read: hold for read, hold in self._of.get(owner, {}).items() if read in reads}
        if left:
            self._of[owner] = left
        else:
            self._of.pop(owner, None)


def describe_failed_read(
    failure: ReadFailed, until: float | None = None, *, over: bool = False
) -> UnreadableResource:
    """Describe a failed read; without `until`, the last known state applies without an end."""
    reason = UnreadableReason.UNAVAILABLE
    if failure.outcome is ReadOutcome.MAY_NOT_LOOK:
        reason = UnreadableReason.MAY_NOT_LOOK
    return UnreadableResource(
        UnreadableReason.HOLD_ENDED if over else reason,
        failure.read.verb,
        resource_name(failure.read.kind),
        failure.read.namespace,
        f"{failure.status} {failure.reason}",
        parse_user(failure.message),
        until,
    )
