"""Times in unix microseconds: those that people give, and one that never goes back.

A text is a day or a time of ISO 8601, UTC unless it says otherwise. As the end of a span a day is meant
whole: what is "until 2026-06-30" is of 30 June, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000

#: What a text may look like, for messages.
EXAMPLES = "2026-01-31 or 2026-01-31T12:00:00Z"


def begin(text: str) -> int:
    """The time, or the first of the day. Raises ValueError for any other text, and for times before 1970."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no day and no time of ISO 8601") from None
    read = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
    try:
        micros = (read - _EPOCH) // _MICROSECOND
    except OverflowError:
        raise ValueError(f"{text} is too far away") from None
    if micros < 0:
        raise ValueError(f"{text} is before 1970")
    return micros


def end(text: str) -> int:
    """The first microsecond that is not in a span until this: the time itself, or the end of the day.

    Raises as `begin`.
    """
    return begin(text) + (_DAY if _is_day(text) else 0)


def last(text: str) -> int:
    """The last microsecond of what is of this time or earlier: the time itself, or the last of the day.

    Raises as `begin`.
    """
    return begin(text) + (_DAY - 1 if _is_day(text) else 0)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


class SteadyClock:
    """The time, for whoever measures durations by it: it never goes back, and never stands still.

    When the system's clock is set back, this one goes on ahead of it by the monotonic clock, at three fourths
    of its pace until both agree; forward it follows at once. A worker does the same for its limits.
    """

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._at, self._time = monotonic(), wall()
        self._lead = 0

    def micros(self) -> int:
        """Now, in unix microseconds."""
        at, wall = self._monotonic(), self._wall()
        passed = max(0, at - self._at)
        expected = self._time + passed - min(passed // 4, self._lead)
        self._at, self._time = at, max(expected, wall)
        self._lead = self._time - wall
        return self._time // 1000
