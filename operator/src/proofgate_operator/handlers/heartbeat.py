"""Whether this process works: whether gateways are reconciled when they are due, and watches heard.

A process that answers is not yet one that works: a watch can die without a word, and so can a loop. Either
means that only a new process will help. An API server that is away does not: it is heard to be away.
"""

import time
from collections.abc import Callable
from typing import Protocol

#: A reconcile may be late, and a watch silent, for this long: the API server sends a bookmark a minute.
OVERDUE_SECONDS = 300.0


class WatchMonitor(Protocol):
    """Whatever can tell which watches are silent."""

    def stale_watches(self, seconds: float) -> list[str]:
        """Return the names of those that were not heard of for this long."""


class Heartbeat:
    """When each gateway has to be reconciled next. `clock` is monotonic seconds."""

    def __init__(self, silence_seconds: float = OVERDUE_SECONDS, clock: Callable[[], float] = time.monotonic):
        self._silence = silence_seconds
        self._clock = clock
        self._due: dict[str, float] = {}
        self._watches: WatchMonitor | None = None
        #: Whether this replica acts; on another one nobody reconciles gateways.
        self.leading = False
        self.ready = False

    def expect_watches(self, watches: WatchMonitor) -> None:
        """Expect these watches to be heard of from now on."""
        self._watches = watches

    def beat(self, uid: str, pause: float) -> None:
        """Note that a reconcile of a gateway ended, well or not; the next is due after `pause` seconds."""
        self._due[uid] = self._clock() + pause

    def set_gateways(self, uids: set[str]) -> None:
        """Note which gateways there are; one that is new is due now."""
        now = self._clock()
        self._due = {uid: self._due.get(uid, now) for uid in uids}

    def overdue_gateways(self) -> list[str]:
        """Return the gateways that nobody reconciles."""
        if not self.leading:
            return []
        now = self._clock()
        return sorted(uid for uid, due in self._due.items() if now - due > self._silence)

    def faults(self) -> list[str]:
        """Return what only a new process will mend."""
        found = [f"not reconciled for {self._silence:g} s: {uid}" for uid in self.overdue_gateways()]
        silent = self._watches.stale_watches(self._silence) if self._watches else []
        return found + [f"watch silent for {self._silence:g} s: {name}" for name in silent]
