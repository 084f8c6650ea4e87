"""Questions that a page asks again and again: one recorded line stands for a minute of them."""

from __future__ import annotations

import threading
from time import monotonic

#: Seconds for which one recorded line covers the repeated query of a reader that follows new exchanges.
RECORD_INTERVAL_SECONDS = 60
_MAX_QUERIES = 1024


class RepeatedQueries:
    """Questions that readers ask again and again, and until when the line that was recorded of each speaks
    for the next ones. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[tuple[object, ...], float] = {}

    def is_recorded(self, question: tuple[object, ...]) -> bool:
        """Whether a line that speaks for a question now is on the disk."""
        with self._lock:
            return monotonic() < self._until.get(question, 0.0)

    def mark_recorded(self, question: tuple[object, ...]) -> None:
        """Says that a line of a question is on the disk."""
        with self._lock:
            if len(self._until) >= _MAX_QUERIES:
                # More lines are written then, and none is missing.
                self._until.clear()
            self._until[question] = monotonic() + RECORD_INTERVAL_SECONDS
