"""Quotas of readers in the access log.

The log has a limit, so that no reader fills the auditor's volume. The limit is divided in advance: if a
reader's part is full, only that reader gets no more responses.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from proofgate.index.readers import Reader

#: Pools of the access log: readers of one tenant, readers of all tenants, sign-ins, commands run by hand.
TENANTS, OFFICERS, SIGN_INS, BY_HAND = "tenants", "all", "sign_ins", "by_hand"
_POOL_SHARES = {TENANTS: 8, OFFICERS: 6, SIGN_INS: 1, BY_HAND: 1}
_TOTAL_SHARES = 16
_STRING = rb'"(?:[^"\\]|\\.)*"'
_READER_LINE = re.compile(
    rb'\{"time":"[^"]*","reader":(%b),"tenant":(null|%b)(?:,"subject":(%b))?[,}]'
    % (_STRING, _STRING, _STRING)
)
_OTHER_LINE = re.compile(rb'\{"time":"[^"]*","(sign_in|by_hand)":')


@dataclass(frozen=True)
class LineOwner:
    """The owner of a line: a pool, and a name in the pool (a reader's name with tenant and subject)."""

    pool: str
    name: str = ""


#: Owner of lines without a known owner. They count only towards the whole log.
UNKNOWN_OWNER = LineOwner("")


def owner_for_reader(reader: Reader) -> LineOwner:
    """Returns the owner of a reader's lines."""
    told = (reader.tenant, reader.name, *(() if reader.subject is None else (reader.subject,)))
    return LineOwner(OFFICERS if reader.tenant is None else TENANTS, " ".join(map(json.dumps, told)))


def line_owner(line: bytes) -> LineOwner:
    """Returns the owner of a line of the log."""
    if found := _READER_LINE.match(line):
        pool = OFFICERS if found[2] == b"null" else TENANTS
        told = (found[2], found[1], *(() if found[3] is None else (found[3],)))
        return LineOwner(pool, b" ".join(told).decode("ascii", "replace"))
    if found := _OTHER_LINE.match(line):
        return LineOwner(SIGN_INS if found[1] == b"sign_in" else BY_HAND)
    return UNKNOWN_OWNER


def pool_bytes(pool: str, most_bytes: int) -> int:
    """Returns a pool's part of a log of at most `most_bytes` bytes."""
    return most_bytes * _POOL_SHARES[pool] // _TOTAL_SHARES


class LogUsage:
    """The bytes that each owner has used, by file."""

    def __init__(self) -> None:
        self._used: dict[object, Counter[LineOwner]] = {}

    def add_line(self, file: object, holder: LineOwner, length: int) -> None:
        """Counts a line of a file."""
        self._used.setdefault(file, Counter())[holder] += length

    def retain_files(self, files: Iterable[object]) -> None:
        """Removes the counts of files that no longer exist."""
        for file in self._used.keys() - set(files):
            del self._used[file]

    def used_bytes(self, holder: LineOwner) -> int:
        """Bytes that one owner has used."""
        return sum(counted[holder] for counted in self._used.values())

    def pool_used_bytes(self, pool: str) -> int:
        """Bytes that all owners in a pool have used."""
        return sum(
            length
            for counted in self._used.values()
            for holder, length in counted.items()
            if holder.pool == pool
        )

    def full_reason(self, holder: LineOwner, length: int, most_bytes: int, sharers: int) -> str | None:
        """Why a line of this length does not fit into its holder's part, which is the pool divided by
        `sharers`; None if it fits."""
        if holder.pool not in _POOL_SHARES:
            return None
        pool = pool_bytes(holder.pool, most_bytes)
        own, used = pool // max(sharers, 1), self.used_bytes(holder)
        if used + length > own:
            return f"this reader has used {used} of its {own} bytes of the access log: move older files away"
        used = self.pool_used_bytes(holder.pool)
        if used + length > pool:
            return (
                f"`{holder.pool}` has used {used} of its {pool} bytes of the access log: "
                "move older files away"
            )
        return None
