"""Days and times as command lines, questions and plans give them, in unix microseconds.

A text is a day or a time of ISO 8601, UTC unless it says otherwise. As the end of a span a day is meant
whole: what is "until 2026-06-30" is of 30 June, too.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000

#: What a text may look like, for messages.
EXAMPLES = "2026-01-31 or 2026-01-31T12:00:00Z"


def begin(text: str) -> int:
    """The time, or the first of the day. Raises ValueError for any other text, and for times before 1970."""
    read = datetime.fromisoformat(text)
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
