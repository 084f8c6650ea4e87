"""Times in unix microseconds: those that people give, and one to measure by.

A text is a day or a time of ISO 8601, UTC unless it says otherwise. As the end of a span a day is meant
whole: what is "until 2026-06-30" is of 30 June, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
#: By how much a steady clock may be ahead, and from what on a change is a step, in nanoseconds.
_MAX_LEAD = 3600 * 10**9
_MIN_STEP = 10**9

#: Examples of a valid date or time, for messages.
EXAMPLES = "2026-01-31 or 2026-01-31T12:00:00Z"


def parse_start(text: str) -> int:
    """The time, or the first of the day. Raises ValueError for any other text, and for times before 1970."""
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
    """The first microsecond that is not in a span until this: the time itself, or the end of the day.

    Raises as `begin`.
    """
    return parse_start(text) + (_DAY if _is_day(text) else 0)


def parse_inclusive_end(text: str) -> int:
    """The last microsecond of what is of this time or earlier: the time itself, or the last of the day.

    Raises as `begin`.
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
    """A step of the system's clock: where it would have stood, and where it stood, in unix microseconds."""

    expected: int
    actual: int

    @property
    def seconds(self) -> float:
        """How far; less than 0 when it was set back."""
        return (self.actual - self.expected) / 1e6

    def describe(self) -> str:
        """As it is told."""
        direction = "back" if self.seconds < 0 else "ahead"
        return f"the system's clock was set {direction} by {abs(self.seconds):.1f} seconds"


class SteadyClock:
    """A clock for measuring durations: it always advances.

    When the system's clock is set back by an hour at most, this one goes on ahead of it by the monotonic
    clock, at three fourths of its pace until both agree. Further back, and forward, it follows at once. A
    worker does the same for its limits. Not safe for several threads.
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
        """Now, in unix microseconds, and the step that the system's clock made since this was asked last."""
        at, wall = self._monotonic(), self._wall()
        passed = max(0, at - self._at)
        expected, counted = self._seen + passed, self._time + passed - min(passed // 4, self._lead)
        turns_back = counted - wall > _MAX_LEAD
        self._at, self._seen = at, wall
        self._time = wall if turns_back else max(counted, wall)
        self._lead = self._time - wall
        # What keeps a clock right moves it by a two-thousandth at most (adjtimex(2)).
        step = None
        if abs(wall - expected) >= max(_MIN_STEP, passed // 1000):
            step = ClockStep(expected // 1000, wall // 1000)
            self.back, self.ahead = self.back + (wall < expected), self.ahead + (wall > expected)
        return self._time // 1000, step

    def micros(self) -> int:
        """Now, in unix microseconds."""
        return self.read()[0]
