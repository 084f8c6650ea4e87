"""Counts in messages: "1 record", "2 records"."""

from __future__ import annotations


def format_count(count: int, noun: str) -> str:
    """A count and its noun, which is given in the singular: `counted(2, "entry")` is "2 entries".

    Only nouns that take an s, or whose y becomes ies.
    """
    if count == 1:
        return f"{count} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}s"
