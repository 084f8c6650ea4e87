"""Queries that a page repeats: one recorded line covers them for a minute."""

from __future__ import annotations

import threading
from time import monotonic

#: Seconds for which one recorded line covers the repeated query of a reader that follows new exchanges.
RECORD_INTERVAL_SECONDS = 60
_MAX_QUERIES = 1024


class RepeatedQueries:
    """Repeated queries of readers, and the time until which the recorded line of each covers repetitions.
    Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[tuple[object, ...], float] = {}

    def is_recorded(self, question: tuple[object, ...]) -> bool:
        """Whether a line that covers this query now is on the disk."""
        with self._lock:
            return monotonic() < self._until.get(question, 0.0)

    def mark_recorded(self, question: tuple[object, ...]) -> None:
        """Records that a line of this query is on the disk."""
        with self._lock:
            if len(self._until) >= _MAX_QUERIES:
                # This causes more lines, and never a missing one.
                self._until.clear()
            self._until[question] = monotonic() + RECORD_INTERVAL_SECONDS
