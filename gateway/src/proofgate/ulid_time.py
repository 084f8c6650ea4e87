"""The time in a ULID (github.com/ulid/spec), which is the name of a log."""

from __future__ import annotations

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_DIGITS = 10


def milliseconds_of(ulid: str) -> int:
    """Returns the time in a ULID in Unix milliseconds. Raises ValueError for an invalid ULID."""
    number = 0
    for digit in ulid[:_TIME_DIGITS]:
        number = number * len(_DIGITS) + _DIGITS.index(digit)
    return number
