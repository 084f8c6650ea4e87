"""The interface between mirrors and copies: required logs, and the status of their copies."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class RequiredLog(NamedTuple):
    """A log for which a mirror waits: its path in a ledger, and its number of records at its end. `removed`:
    the mirror needs the files that remain after the log's removal."""

    log_path: str
    size: int
    removed: bool = False


@dataclass(frozen=True)
class CopyStatus:
    """The status of a copy. If it is incomplete, `reason` says what it waits for."""

    is_complete: bool = False
    #: True if the worker answers but no longer has the log.
    is_missing_on_worker: bool = False
    reason: str = ""
    #: Number of times since the start that the copy was made again because a reader refused it.
    rebuild_count: int = 0


class ReplicaMirror(Protocol):
    """The interface of a mirror for the copies, whose thread calls all its functions."""

    def required_logs(self) -> Collection[RequiredLog]:
        """The logs for which the mirror waits."""

    def rejected_logs(self) -> Collection[str]:
        """The origins of logs whose copies do not verify."""

    def has_log(self, place: str, *, removed: bool) -> bool:
        """Whether the mirror has a log, or with `removed` its remaining files, so that the copy may be
        removed."""
