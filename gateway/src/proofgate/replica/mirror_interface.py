"""What mirrors want of the copies, and how the copy of each log that they wait for stands."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class RequiredLog(NamedTuple):
    """A log that a mirror waits for: its place in a ledger, and the records with which it ended. `removed`:
    what stays of it after its removal is wanted."""

    log_path: str
    size: int
    removed: bool = False


@dataclass(frozen=True)
class CopyStatus:
    """How a copy stands. If it is not whole, `why` says what it waits for."""

    is_complete: bool = False
    #: True if the worker answers but no longer has the log.
    is_missing_on_worker: bool = False
    reason: str = ""
    #: Number of times since the start that the copy was made again because a reader refused it.
    rebuild_count: int = 0


class ReplicaMirror(Protocol):
    """A mirror, as the copies see it. All of it is asked from their thread."""

    def required_logs(self) -> Collection[RequiredLog]:
        """What it waits for."""

    def rejected_logs(self) -> Collection[str]:
        """The origins of logs whose copies do not verify."""

    def has_log(self, place: str, *, removed: bool) -> bool:
        """Whether it holds a log, or what stays of it after its removal. Then the copy may be removed."""
