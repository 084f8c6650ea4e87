"""When a ULID was made (github.com/ulid/spec): logs are named by ULIDs."""

from __future__ import annotations

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_DIGITS = 10


def milliseconds_of(ulid: str) -> int:
    """Unix milliseconds. Raises ValueError for what is no ULID."""
    number = 0
    for digit in ulid[:_TIME_DIGITS]:
        number = number * len(_DIGITS) + _DIGITS.index(digit)
    return number
