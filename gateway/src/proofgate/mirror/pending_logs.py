"""The ended logs that a mirror reads from copies of workers' logs. Each waits until it is copied.

A log that is not copied yet is not missing, and delays no other log. A log that its worker no longer has, and
that was not copied, is missing. A copy that does not verify is made again before the log itself is considered
invalid.
"""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from proofgate.mirror import aggregate
from proofgate.mirror.aggregate import EndedLog, TileSource
from proofgate.mirror.mirror_progress import MirrorProgress
from proofgate.replica.mirror_interface import CopyStatus, RequiredLog

log = logging.getLogger("proofgate.mirror")

#: Maximum number of logs that wait at a time. Further logs follow when a waiting log is mirrored.
MAX_WAITING = 1000


class CopyStatusSource(Protocol):
    """A source of copies of workers' logs."""

    def status(self, wanted: RequiredLog) -> CopyStatus:
        """Returns the status of a copy. Called from the threads of mirrors; does not block."""


class PendingLogs:
    """The logs that one mirror waits for. `ledger` has the copies, in the layout of a ledger."""

    def __init__(self, memory: MirrorProgress, copies: CopyStatusSource, ledger: Path) -> None:
        self._memory, self._copies, self._ledger = memory, copies, ledger
        #: Copies that did not verify, by entry, with the number of times that each copy was made again before.
        self._doubted: dict[int, int] = {}
        self._reason: str | None = None
        self.why: str | None = None
        """The cause of the first delay in the last round; None if no log was delayed."""

    @property
    def waiting(self) -> list[EndedLog]:
        """The logs that are not mirrored yet, in the order of their ends."""
        return list(self._memory.waiting)

    def start_round(self, tiles: TileSource, ledger_name: str, size: int) -> bool:
        """Starts a round: adds the logs that have ended according to new entries of the aggregate log of
        `size` entries. Returns whether there were any."""
        self._reason = None
        room = MAX_WAITING - len(self._memory.waiting)
        if self._memory.next_entry >= size or room <= 0:
            return False
        ended = aggregate.ended_logs(tiles, ledger_name, self._memory.next_entry, size)
        found = list(itertools.islice(ended, room))
        self._memory.waiting += [one for one in found if not self._was_mirrored(one)]
        self._memory.next_entry = size if len(found) < room else found[-1].index + 1
        return True

    def _was_mirrored(self, one: EndedLog) -> bool:
        """Whether a log was mirrored before and its copy was removed later, so that it cannot be compared."""
        has = self._memory.has_log(one.log_path, removed=one.removed)
        return has and not (self._ledger / one.log_path).exists()

    def status(self, one: EndedLog) -> CopyStatus:
        """The status of a log's copy. A copy that does not verify counts as incomplete until it is made
        again."""
        standing = self._copies.status(_required_log(one))
        if one.index in self._doubted and standing.rebuild_count <= self._doubted[one.index]:
            standing = replace(
                standing, is_complete=False, reason="its copy does not verify, and the log is copied again"
            )
        if not standing.is_complete and self._reason is None:
            self._reason = f"{one.log_path} waits for its copy: {standing.reason}"
        return standing

    def mark_unverified(self, one: EndedLog, message: str) -> bool:
        """Records that a copy does not verify. Returns whether it was already made again."""
        made_again = self._copies.status(_required_log(one)).rebuild_count
        if self._reason is None:
            self._reason = f"the copy of {one.log_path} does not verify: {message}"
        return made_again > self._doubted.setdefault(one.index, made_again)

    def finish(self, one: EndedLog, *, is_there: bool) -> None:
        """Removes a log from the waiting ones. `is_there`: it was mirrored."""
        if is_there:
            try:
                self._memory.mark_mirrored(one)
            except OSError as error:
                log.warning(
                    "%s: its copy stays, because the auditor cannot record that the log was mirrored: %s",
                    one.log_path,
                    error.strerror,
                )
        self._doubted.pop(one.index, None)
        self._memory.waiting = [other for other in self._memory.waiting if other.index != one.index]

    def finish_round(self) -> None:
        """Ends a round."""
        self.why = self._reason

    def required_logs(self) -> set[RequiredLog]:
        """The logs for which the mirror waits, for the thread of the copies."""
        return {_required_log(one) for one in self.waiting}

    def rejected_logs(self) -> set[str]:
        """The places of logs whose copies do not verify, for the thread of the copies."""
        doubted = set(self._doubted)
        return {one.log_path for one in self.waiting if one.index in doubted}


def _required_log(one: EndedLog) -> RequiredLog:
    return RequiredLog(one.log_path, one.size, one.removed)
