"""How much of the access log each of those who are recorded may fill.

The log has a limit, so that no reader fills the auditor's volume. It is divided beforehand: a reader that
has used its part up is the only one that gets no more answers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from proofgate.index.readers import Reader

#: Of sixteen parts of the whole: who is recorded in each pool.
TENANTS, OFFICERS, SIGN_INS, BY_HAND = "tenants", "all", "sign_ins", "by_hand"
_PARTS = {TENANTS: 8, OFFICERS: 6, SIGN_INS: 1, BY_HAND: 1}
_WHOLE = 16
_STRING = rb'"(?:[^"\\]|\\.)*"'
_READER = re.compile(
    rb'\{"time":"[^"]*","reader":(%b),"tenant":(null|%b)(?:,"subject":(%b))?[,}]'
    % (_STRING, _STRING, _STRING)
)
_OTHER = re.compile(rb'\{"time":"[^"]*","(sign_in|by_hand)":')


@dataclass(frozen=True)
class Holder:
    """Whose line it is: the pool, and in it a name (of a reader, with tenant and subject)."""

    pool: str
    name: str = ""


#: Lines of nobody that is known: they count for the whole alone.
NOBODY = Holder("")


def holder_of_reader(reader: Reader) -> Holder:
    """Whose the lines of a reader are."""
    told = (reader.tenant, reader.name, *(() if reader.subject is None else (reader.subject,)))
    return Holder(OFFICERS if reader.tenant is None else TENANTS, " ".join(map(json.dumps, told)))


def holder_of(line: bytes) -> Holder:
    """Whose line of the log this is."""
    if found := _READER.match(line):
        pool = OFFICERS if found[2] == b"null" else TENANTS
        told = (found[2], found[1], *(() if found[3] is None else (found[3],)))
        return Holder(pool, b" ".join(told).decode("ascii", "replace"))
    if found := _OTHER.match(line):
        return Holder(SIGN_INS if found[1] == b"sign_in" else BY_HAND)
    return NOBODY


def part(pool: str, most_bytes: int) -> int:
    """The bytes that a pool has of a record of at most so many."""
    return most_bytes * _PARTS[pool] // _WHOLE


class Room:
    """The bytes that each has used, by the files in which its lines are."""

    def __init__(self) -> None:
        self._used: dict[object, Counter[Holder]] = {}

    def count(self, file: object, holder: Holder, length: int) -> None:
        """Counts a line of a file."""
        self._used.setdefault(file, Counter())[holder] += length

    def forget_all_but(self, files: Iterable[object]) -> None:
        """Forgets the files that were moved away."""
        for file in self._used.keys() - set(files):
            del self._used[file]

    def used(self, holder: Holder) -> int:
        """Bytes of one holder."""
        return sum(counted[holder] for counted in self._used.values())

    def used_of_pool(self, pool: str) -> int:
        """Bytes of all in a pool."""
        return sum(
            length
            for counted in self._used.values()
            for holder, length in counted.items()
            if holder.pool == pool
        )

    def refusal(self, holder: Holder, length: int, most_bytes: int, sharers: int) -> str | None:
        """Why a line of this length has no room in its holder's part, which `sharers` have equally; None when
        it has."""
        if holder.pool not in _PARTS:
            return None
        pool = part(holder.pool, most_bytes)
        own, used = pool // max(sharers, 1), self.used(holder)
        if used + length > own:
            return f"this reader has used {used} of its {own} bytes of the access log: move older files away"
        used = self.used_of_pool(holder.pool)
        if used + length > pool:
            return (
                f"`{holder.pool}` has used {used} of its {pool} bytes of the access log: "
                "move older files away"
            )
        return None
