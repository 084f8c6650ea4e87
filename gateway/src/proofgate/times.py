"""Times in Unix microseconds: parsing of user input, and a clock for measurements.

A text is an ISO 8601 day or time, UTC unless it has an offset. A day as the end of a period is included:
"until 2026-06-30" includes 30 June.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
#: Maximum lead of a steady clock, and minimum size of a clock step, in nanoseconds.
_MAX_LEAD = 3600 * 10**9
_MIN_STEP = 10**9

#: Examples of a valid date or time, for messages.
EXAMPLES = "2026-01-31 or 2026-01-31T12:00:00Z"


def parse_start(text: str) -> int:
    """Parses a time, or a day to its first microsecond. Raises ValueError for any other text, and for times
    before 1970."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a date or time in ISO 8601") from None
    read = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
    try:
        micros = (read - _EPOCH) // _MICROSECOND
    except OverflowError:
        raise ValueError(f"{text} is out of range") from None
    if micros < 0:
        raise ValueError(f"{text} is before 1970")
    return micros


def parse_exclusive_end(text: str) -> int:
    """Parses an exclusive end: a time to itself, a day to the first microsecond of the next day.

    Raises as `parse_start`.
    """
    return parse_start(text) + (_DAY if _is_day(text) else 0)


def parse_inclusive_end(text: str) -> int:
    """Parses an inclusive end: a time to itself, a day to its last microsecond.

    Raises as `parse_start`.
    """
    return parse_start(text) + (_DAY - 1 if _is_day(text) else 0)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class ClockStep:
    """A step of the system's clock: the expected and the actual time, in Unix microseconds."""

    expected: int
    actual: int

    @property
    def seconds(self) -> float:
        """The size of the step in seconds; negative if the clock was set back."""
        return (self.actual - self.expected) / 1e6

    def describe(self) -> str:
        """Describes the step in a message."""
        direction = "back" if self.seconds < 0 else "ahead"
        return f"the system's clock was set {direction} by {abs(self.seconds):.1f} seconds"


class SteadyClock:
    """A clock for measuring durations: it always advances.

    If the system's clock is set back by at most an hour, this clock continues from its last time, at three
    quarters of the monotonic clock's speed, until both agree. A larger step back, or a step forward, is
    followed immediately. A worker does the same for its limits. Not thread-safe.
    """

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._at, self._seen = monotonic(), wall()
        self._time = self._seen
        self._lead = 0
        #: Number of clock jumps so far, backward and forward.
        self.back = self.ahead = 0

    def read(self) -> tuple[int, ClockStep | None]:
        """Returns the current time in Unix microseconds, and the step of the system's clock since the last
        call; None without one."""
        at, wall = self._monotonic(), self._wall()
        passed = max(0, at - self._at)
        expected, counted = self._seen + passed, self._time + passed - min(passed // 4, self._lead)
        turns_back = counted - wall > _MAX_LEAD
        self._at, self._seen = at, wall
        self._time = wall if turns_back else max(counted, wall)
        self._lead = self._time - wall
        # Normal clock corrections change the speed by at most 1/2000 (adjtimex(2)).
        step = None
        if abs(wall - expected) >= max(_MIN_STEP, passed // 1000):
            step = ClockStep(expected // 1000, wall // 1000)
            self.back, self.ahead = self.back + (wall < expected), self.ahead + (wall > expected)
        return self._time // 1000, step

    def micros(self) -> int:
        """Returns the current time in Unix microseconds."""
        return self.read()[0]
