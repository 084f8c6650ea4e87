"""Counts in messages: "1 record", "2 records"."""

from __future__ import annotations


def format_count(count: int, noun: str) -> str:
    """Return a count and its noun, given in the singular: `format_count(2, "entry")` is "2 entries".

    It only supports nouns with a plural in s, or in ies instead of y.
    """
    if count == 1:
        return f"{count} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}s"
