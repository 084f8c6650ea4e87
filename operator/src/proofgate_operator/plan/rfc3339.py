"""Conversion between RFC 3339 times, as the API writes them, and seconds since 1970."""

from datetime import UTC, datetime


def seconds_of(text: object) -> float | None:
    """Return an RFC 3339 time as seconds since 1970; None if it is not a valid time."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return None


def time_of(seconds: float) -> str:
    """Return seconds since 1970 as an RFC 3339 time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
