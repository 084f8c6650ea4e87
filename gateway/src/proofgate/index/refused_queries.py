"""Records of refused queries, which are summarised because nothing was read."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from time import monotonic

from proofgate.index.readers import Reader

#: Seconds of refused queries that one line summarises.
WINDOW_SECONDS = 60
#: Maximum number of refused queries of a reader that get a separate line in one window.
MAX_LINES = 20
_MAX_NAMES = 16
_LONGEST_NAME, _LONGEST_VALUE = 32, 64


def shorten_query(asked: Mapping[str, str]) -> dict[str, str]:
    """Shortens a query's parameters, because a refused query can contain any text."""
    names = list(asked)[:_MAX_NAMES]
    return {name[:_LONGEST_NAME]: _shorten(asked[name]) for name in names}


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)})"


class RefusedQueries:
    """Counts refused queries by reader. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = monotonic()
        self._lines: Counter[tuple[str, str | None, str | None]] = Counter()
        self._more: dict[tuple[str, str | None, str | None], Counter[str]] = {}

    def should_record(self, reader: Reader, code: str) -> bool:
        """Whether a refused query gets a separate line; otherwise it is counted."""
        who = reader.identity
        with self._lock:
            self._lines[who] += 1
            if self._lines[who] <= MAX_LINES:
                return True
            self._more.setdefault(who, Counter())[code] += 1
            return False

    def take_counts(self, *, ending: bool = False) -> Iterator[tuple[Reader, dict[str, int]]]:
        """Yields and resets the counts of each reader by code, if the minute is over or the process is
        ending."""
        with self._lock:
            if not ending and monotonic() - self._began < WINDOW_SECONDS:
                return
            more, self._more = self._more, {}
            self._lines.clear()
            self._began = monotonic()
        for (name, tenant, subject), counted in more.items():
            yield Reader(name, tenant, subject=subject), dict(counted)
