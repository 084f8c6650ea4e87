"""Detects a process that no longer works: gateways that are not reconciled when due, or watches that are
silent.

A process that answers may still not work: a watch or a loop can stop silently. Only a new process fixes
either fault. An API server that is down is no such fault, because its errors count as a sign of life.
"""

import time
from collections.abc import Callable
from typing import Protocol

#: How late a reconcile may be, and how long a watch may be silent: the API server sends a bookmark every
#: minute.
OVERDUE_SECONDS = 300.0


class WatchMonitor(Protocol):
    """An object that knows which watches are silent."""

    def stale_watches(self, seconds: float) -> list[str]:
        """Return the names of the watches that received nothing for `seconds`."""


class Heartbeat:
    """The time of the next reconcile of each gateway. `clock` returns monotonic seconds."""

    def __init__(self, silence_seconds: float = OVERDUE_SECONDS, clock: Callable[[], float] = time.monotonic):
        self._silence = silence_seconds
        self._clock = clock
        self._due: dict[str, float] = {}
        self._watches: WatchMonitor | None = None
        #: Whether this replica is the active one; other replicas do not reconcile gateways.
        self.leading = False
        self.ready = False

    def expect_watches(self, watches: WatchMonitor) -> None:
        """Monitor these watches from now on."""
        self._watches = watches

    def beat(self, uid: str, pause: float) -> None:
        """Record that a reconcile of a gateway ended, whether it failed or not. The next one is due after
        `pause` seconds."""
        self._due[uid] = self._clock() + pause

    def set_gateways(self, uids: set[str]) -> None:
        """Set the existing gateways; a new gateway is due now."""
        now = self._clock()
        self._due = {uid: self._due.get(uid, now) for uid in uids}

    def overdue_gateways(self) -> list[str]:
        """Return the uids of the gateways whose reconcile is overdue."""
        if not self.leading:
            return []
        now = self._clock()
        return sorted(uid for uid, due in self._due.items() if now - due > self._silence)

    def faults(self) -> list[str]:
        """Return the faults that only a new process fixes."""
        found = [f"not reconciled for {self._silence:g} s: {uid}" for uid in self.overdue_gateways()]
        silent = self._watches.stale_watches(self._silence) if self._watches else []
        return found + [f"watch silent for {self._silence:g} s: {name}" for name in silent]
