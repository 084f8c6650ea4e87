"""Reads that are no look just now: since when, until when what was known counts, and when to look again."""

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from proofgate_operator.kube.reads import Read, ReadFailed, ReadOutcome
from proofgate_operator.kube.resources import resource_name
from proofgate_operator.plan.unread import HOLD_SECONDS, Unread, UnreadReason, user_of

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 15.0


@dataclass
class _Hold:
    ends: float
    until: float
    failure: ReadFailed
    due: float = 0.0
    tries: int = 0


class Holds:
    """Holds by who needs the read, and the read. `clock` is monotonic seconds, which measure them; `wall`
    are seconds since 1970, for people and for the process that follows."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.clock = clock
        self.wall = wall
        self._of: dict[str, dict[Read, _Hold]] = {}

    def spent(self, since: float | None) -> float:
        """Return how much of a hold is over that an earlier process began at `since` (seconds since 1970): a
        restart does not move its end."""
        return 0.0 if since is None else min(max(self.wall() - since, 0.0), HOLD_SECONDS)

    def begin(self, owner: str, failure: ReadFailed, since: float | None = None) -> Unread:
        """Note that a read was no look; return what holds now. `since` is as `spent` takes it."""
        now, held = self.clock(), self._of.setdefault(owner, {})
        hold = held.get(failure.read)
        if hold is None:
            left = HOLD_SECONDS - self.spent(since)
            hold = held[failure.read] = _Hold(now + left, self.wall() + left, failure)
        hold.failure = failure
        pause = min(_FIRST_PAUSE_SECONDS * (1 << min(hold.tries, 8)), _LONGEST_PAUSE_SECONDS)
        hold.tries += 1
        hold.due = now + max(pause * random.uniform(1, 1.2), failure.retry_after or 0.0)
        if now < hold.ends:
            # What is over is said when it is.
            hold.due = min(hold.due, hold.ends)
        return described(failure, hold.until, over=now >= hold.ends)

    def has(self, owner: str) -> bool:
        """Return whether anything is held for `owner`, or was until it ended."""
        return owner in self._of

    def due(self, owner: str) -> bool:
        """Return whether it is time to look again at anything that `owner` needs."""
        now = self.clock()
        return any(now >= hold.due for hold in self._of.get(owner, {}).values())

    def keep(self, owner: str, reads: Collection[Read] = ()) -> None:
        """Forget what is held for `owner` but for these reads: the others were looks, or are not needed."""
        left = {read: hold for read, hold in self._of.get(owner, {}).items() if read in reads}
        if left:
            self._of[owner] = left
        else:
            self._of.pop(owner, None)


def described(failure: ReadFailed, until: float | None = None, *, over: bool = False) -> Unread:
    """Return what is to be said of a read that was no look; without `until`, what was known has no end."""
    reason = UnreadReason.UNAVAILABLE
    if failure.outcome is ReadOutcome.MAY_NOT_LOOK:
        reason = UnreadReason.MAY_NOT_LOOK
    return Unread(
        UnreadReason.HOLD_ENDED if over else reason,
        failure.read.verb,
        resource_name(failure.read.kind),
        failure.read.namespace,
        f"{failure.status} {failure.reason}",
        user_of(failure.message),
        until,
    )
