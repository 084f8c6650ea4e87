"""Copies accepted data to one mirror, in a separate thread: complete logs after their end, and the newest
checkpoints once a minute.

After an interruption, the next round continues: existing objects are compared, and nothing is overwritten.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from proofgate import _core
from proofgate.key_statements import chain_statements
from proofgate.mirror import aggregate, checkpoints, configurations, verified_logs
from proofgate.mirror.aggregate import EndedLog
from proofgate.mirror.mirror_progress import MirrorProgress
from proofgate.mirror.pending_logs import CopyStatusSource, PendingLogs
from proofgate.mirror.target import ConflictError, FileChangedError, MirrorError, MirrorObject, MirrorTarget
from proofgate.mirror.verified_logs import UnverifiedError
from proofgate.replica.mirror_interface import RequiredLog

log = logging.getLogger("proofgate.mirror")

#: Seconds between two checks for data to mirror.
TICK_SECONDS = 1.0
#: Maximum number of waiting logs that one round checks, and that the lag in bytes includes.
MAX_BATCH = 1000
#: Minimum seconds between two mirrored checkpoints of the aggregate log, or of one shard.
CHECKPOINT_SECONDS = 60.0
#: Seconds between two checks whether the mirror protects its objects from deletion.
CHECK_INTERVAL_SECONDS = 60.0
#: Seconds after which data that is not mirrored becomes a finding.
MAX_LAG_SECONDS = 600.0
#: Seconds before unverified data is checked again: network file systems can show old files for a while.
RECHECK_SECONDS = 60.0
#: Maximum number of missing configurations that are looked for repeatedly.
MAX_WAITING = 1000
#: Seconds after which an unreadable log becomes a finding and is skipped, if other logs can be read.
GIVE_UP_SECONDS = 86400.0
_MAX_PAUSE = 60.0
#: Code of an error for a volume that cannot be read now.
_UNREADABLE = "mirror_source"
_VERDICTS = {
    "mirror_conflict": "diverged",
    "mirror_unverified": "invalid",
    "mirror_log_missing": "diverged",
}


class MirrorOutcome(Enum):
    """The outcome of mirroring a log."""

    MIRRORED = "mirrored"
    #: The log's problem is a finding, and the log is not retried.
    FAILED = "found"
    RETRY = "later"


class _StoppedError(Exception):
    """The auditor is stopping."""


@dataclass
class MirrorTotals:
    """Totals of a mirror, for metrics."""

    objects: int = 0
    bytes: int = 0
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class Mirror:
    """One mirror of one auditor's ledger."""

    target: MirrorTarget
    auditor: _core.Auditor
    ledger: Path
    state: Path
    retention_key: str | None = None
    max_lag_seconds: float = MAX_LAG_SECONDS
    recheck_seconds: float = RECHECK_SECONDS
    give_up_seconds: float = GIVE_UP_SECONDS
    #: The status of copies, if `ledger` is a folder of copies.
    copies: CopyStatusSource | None = None
    totals: MirrorTotals = field(default_factory=MirrorTotals)
    #: Bytes of ended logs that wait to be mirrored; at most `MAX_BATCH` logs are included.
    lag_bytes: int = 0
    _lagging_since: float | None = None
    #: Why nothing may be written to the mirror, and since when (Unix microseconds); None if writing is
    #: allowed.
    _lock_problem: tuple[str, int] | None = None
    _failure: str | None = None
    _suspected: dict[int, float] = field(default_factory=dict)
    _written_checkpoints: set[str] = field(default_factory=set)
    #: Entries after `next_entry` that are done although the log of an earlier entry cannot be read.
    _completed_ahead: set[int] = field(default_factory=set)
    #: Entries whose logs cannot be read, and since when.
    _unreadable: dict[int, float] = field(default_factory=dict)
    _written_configurations: set[str] = field(default_factory=set)
    #: Since when each missing configuration has been awaited, in monotonic seconds.
    _waiting_since: dict[str, float] = field(default_factory=dict)
    _checkpoints_due: float = 0.0
    _check_due: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        own, self._ledger_key = self.auditor.verifying_keys()
        self._ledger_name = self._ledger_key.split("+", 1)[0]
        self._memory = MirrorProgress.open(self.state, self.target.name, own)
        self._copied = PendingLogs(self._memory, self.copies, self.ledger) if self.copies else None

    @property
    def name(self) -> str:
        """The mirror's address."""
        return self.target.name

    def start(self) -> None:
        """Starts the thread, which mirrors until `stop`. The end of the process does not wait for the thread,
        which may be sending."""
        threading.Thread(target=self._run, name="mirror", daemon=True).start()

    def stop(self) -> None:
        """Starts no further work."""
        self._stop.set()

    def lag_seconds(self) -> float:
        """Seconds for which data has waited to be mirrored; 0 if none waits."""
        since = self._lagging_since
        return 0.0 if since is None else time.monotonic() - since

    def required_logs(self) -> Collection[RequiredLog]:
        """The copies for which the mirror waits."""
        return self._copied.required_logs() if self._copied else ()

    def rejected_logs(self) -> Collection[str]:
        """The places of logs whose copies do not verify."""
        return self._copied.rejected_logs() if self._copied else ()

    def has_log(self, place: str, *, removed: bool) -> bool:
        """Whether the mirror has a log of a copy, or the files that remain after the log's removal."""
        return self._memory.has_log(place, removed=removed)

    def findings(self) -> list[dict[str, Any]]:
        """Problems of the mirror, in the format of the auditor's findings."""
        found = list(self._memory.findings)
        unlocked, lag = self._lock_problem, self.lag_seconds()
        if unlocked is not None:
            found.append(self._finding("mirror_unlocked", unlocked[0], unlocked[1]))
        now = time.monotonic()
        for digest, since in sorted(self._memory.configurations.items()):
            # The time before this start is not counted, because clocks may have been changed.
            if now - self._waiting_since.setdefault(digest, now) >= self.recheck_seconds:
                problem = (
                    "is not in the ledger"
                    if self.copies is None
                    else "has not been copied from any worker yet"
                )
                message = f"a record names the configuration {digest}, which {problem}"
                found.append(self._finding("mirror_configuration_missing", message, since))
        if lag >= self.max_lag_seconds:
            reason = self._failure or (self._copied and self._copied.why)
            why = f": {reason}" if reason else ""
            found.append(
                self._finding(
                    "mirror_lags",
                    f"verified data has waited to be mirrored for {int(self.max_lag_seconds)} seconds{why}",
                    time.time_ns() // 1000 - int(lag * 1e6),
                )
            )
        return found

    def _run(self) -> None:
        tries = 0
        while not self._stop.wait(TICK_SECONDS if not tries else min(2.0 ** (tries - 1), _MAX_PAUSE)):
            try:
                self.run_once()
                tries = 0
            except _StoppedError:
                return
            except Exception as error:
                tries += 1
                self._mark_lagging()
                if not isinstance(error, MirrorError):
                    log.exception("%s: mirroring failed and will be retried", self.name)

    def run_once(self) -> None:
        """Mirrors everything up to the published checkpoint. Raises MirrorError; objects that were already
        written stay."""
        published = self.auditor.checkpoint()
        if published is None:
            return
        try:
            self._check_target()
            if self._lock_problem is None:
                self._mirror_published(published)
        except MirrorError as error:
            self.totals.failures[error.code] += 1
            if self._failure != str(error):
                log.warning("%s: %s [%s]", self.name, error, error.code)
            self._failure = str(error)
            raise
        if self._failure is not None:
            log.info("%s: it accepts objects again", self.name)
        self._failure = None
        is_waiting = self._suspected or self._memory.waiting or self._memory.next_entry < published[0]
        if self._lock_problem is None and not is_waiting:
            self._lagging_since = None
        else:
            self._mark_lagging()

    def _check_target(self) -> None:
        if time.monotonic() < self._check_due:
            return
        problem = self.target.problem()
        if problem is None:
            self._lock_problem = None
        elif self._lock_problem is None or self._lock_problem[0] != problem:
            self._lock_problem = (problem, time.time_ns() // 1000)
            log.error("%s: nothing is mirrored: %s [mirror_unlocked]", self.name, problem)
        self._check_due = time.monotonic() + (CHECK_INTERVAL_SECONDS if problem is None else TICK_SECONDS)

    def _mark_lagging(self) -> None:
        if self._lagging_since is None:
            self._lagging_since = time.monotonic()

    def _mirror_published(self, published: tuple[int, str]) -> None:
        size, note = published
        unreadable = None
        if self._copied is not None:
            unreadable = self._mirror_copied_logs(self._copied, size)
        elif self._memory.next_entry < size:
            ended = aggregate.ended_logs(self.auditor, self._ledger_name, self._memory.next_entry, size)
            waiting = (one for one in ended if one.index not in self._completed_ahead)
            due = list(itertools.islice(waiting, MAX_BATCH))
            if due:
                self._mark_lagging()
            is_done, unreadable = self._mirror_logs(due)
            if not is_done:
                if unreadable is not None:
                    raise unreadable
                return
            if unreadable is None:
                is_all = len(due) < MAX_BATCH
                self._memory.next_entry = size if is_all else due[-1].index + 1
                self._completed_ahead.clear()
                self._save()
                if not is_all:
                    return
        if unreadable is None and self._copied is None:
            self.lag_bytes = 0
        self._mirror_tiles(size)
        if time.monotonic() >= self._checkpoints_due:
            self._mirror_checkpoints(size, note)
            self._checkpoints_due = time.monotonic() + CHECKPOINT_SECONDS
        if unreadable is not None:
            raise unreadable

    def _mirror_copied_logs(self, logs: PendingLogs, size: int) -> MirrorError | None:
        """Mirrors ended logs with complete copies. Returns why one of them cannot be read; None if all can.
        Raises MirrorError."""
        if logs.start_round(self.auditor, self._ledger_name, size):
            self._save()
        unreadable = None
        for one in logs.waiting:
            self._mark_lagging()
            try:
                outcome = self._mirror_copy(logs, one)
            except MirrorError as error:
                if error.code != _UNREADABLE:
                    raise
                unreadable = error
                continue
            if outcome is not MirrorOutcome.RETRY:
                logs.finish(one, is_there=outcome is MirrorOutcome.MIRRORED)
                self._save()
        logs.finish_round()
        self.lag_bytes = sum(verified_logs.segment_bytes(self.ledger, one) for one in logs.waiting)
        return unreadable

    def _mirror_copy(self, logs: PendingLogs, one: EndedLog) -> MirrorOutcome:
        standing = logs.status(one)
        if standing.is_complete:
            return self._mirror_log(one)
        if standing.is_missing_on_worker:
            missing = f"its worker no longer holds the log, and not all of it was copied: {standing.reason}"
            return self._suspect(one, "mirror_log_missing", missing)
        self._suspected.pop(one.index, None)
        return MirrorOutcome.RETRY

    def _mirror_logs(self, due: list[EndedLog]) -> tuple[bool, MirrorError | None]:
        """Mirrors ended logs, up to the first log that must be checked again. Returns whether there is no
        such log, and why the first skipped log cannot be read. Raises MirrorError."""
        sizes = [verified_logs.segment_bytes(self.ledger, one) for one in due]
        self.lag_bytes = sum(sizes)
        unreadable: dict[EndedLog, MirrorError] = {}
        for one, length in zip(due, sizes, strict=True):
            try:
                if self._mirror_log(one) is MirrorOutcome.RETRY:
                    return False, next(iter(unreadable.values()), None)
            except MirrorError as error:
                if error.code != _UNREADABLE:
                    raise
                # This log waits until it can be read. The other logs do not wait for it.
                self._suspected.pop(one.index, None)
                self._unreadable.setdefault(one.index, time.monotonic())
                unreadable[one] = error
                continue
            self.lag_bytes -= length
            self._unreadable.pop(one.index, None)
            if unreadable:
                self._completed_ahead.add(one.index)
            else:
                self._memory.next_entry = one.index + 1
                self._save()
        if len(unreadable) < len(due):
            for one, why in list(unreadable.items()):
                if self._is_given_up(one, why):
                    del unreadable[one]
        return True, next(iter(unreadable.values()), None)

    def _is_given_up(self, ended: EndedLog, why: MirrorError) -> bool:
        since = self._unreadable.get(ended.index)
        if since is None or time.monotonic() - since < self.give_up_seconds:
            return False
        del self._unreadable[ended.index]
        self._completed_ahead.add(ended.index)
        told = (
            f"it could not be read for {int(self.give_up_seconds)} seconds, although other logs could "
            f"be read: {why}"
        )
        self._add_finding("mirror_unverified", f"{ended.log_path} is not mirrored: {told}")
        return True

    def _mirror_log(self, ended: EndedLog) -> MirrorOutcome:
        """Mirrors an ended log. Returns RETRY if the log must be checked again first. Raises MirrorError."""
        try:
            files = verified_logs.verified_files(self.ledger, ended, self._ledger_key, self.retention_key)
        except _core.LedgerError as error:
            if self._copied is None and self._is_missing(ended):
                return self._suspect(
                    ended, "mirror_log_missing", "the log was removed before it was mirrored"
                )
            if error.code == "ledger_io":
                raise MirrorError(_UNREADABLE, f"{ended.log_path} cannot be read: {error}") from None
            return self._handle_unverified(ended, str(error))
        except UnverifiedError as error:
            return self._handle_unverified(ended, str(error))
        try:
            for piece, segment in files:
                self._put(piece)
                if segment is not None:
                    self._mirror_configurations(configurations.referenced_digests(segment))
            self._put(checkpoints.log_checkpoint_object(ended.log_path, ended.size, ended.checkpoint))
        except FileChangedError as error:
            return self._handle_unverified(ended, f"{error} changed while it was mirrored")
        self._suspected.pop(ended.index, None)
        return MirrorOutcome.MIRRORED

    def _is_missing(self, ended: EndedLog) -> bool:
        """Whether a log is missing although the ledger is readable. Raises MirrorError."""
        try:
            folders = (path for path in self.ledger.iterdir() if path.is_dir())
            shards = [path.name for path in folders if path.name.isdecimal()]
            if not shards:
                # The volume is probably not mounted. If all logs were removed, the auditor reports it.
                raise self._unreachable_error(
                    "there is no shard in the ledger: its volume may not be mounted"
                )
            # Without these statements, signatures with a newer key cannot be verified.
            chain_statements(self.ledger, self._ledger_key)
            if ended.shard not in shards:
                return True
            logs = (self.ledger / ended.shard).iterdir()
            return not any(path.name == ended.incarnation and path.is_dir() for path in logs)
        except OSError as error:
            raise self._unreachable_error(f"the ledger cannot be read: {error.strerror}") from None

    def _unreachable_error(self, why: str) -> MirrorError:
        # A problem of the whole volume says nothing about a single log, regardless of its duration.
        self._unreadable.clear()
        return MirrorError(_UNREADABLE, why)

    def _handle_unverified(self, ended: EndedLog, message: str) -> MirrorOutcome:
        if self._copied is not None and not self._copied.mark_unverified(ended, message):
            # The problem is attributed to the log only if another copy has it too.
            return MirrorOutcome.RETRY
        return self._suspect(ended, "mirror_unverified", message)

    def _suspect(self, ended: EndedLog, code: str, message: str) -> MirrorOutcome:
        since = self._suspected.setdefault(ended.index, time.monotonic())
        if time.monotonic() - since < self.recheck_seconds:
            return MirrorOutcome.RETRY
        self._suspected.pop(ended.index, None)
        self._add_finding(code, f"{ended.log_path} is not mirrored: {message}")
        return MirrorOutcome.FAILED

    def _mirror_configurations(self, digests: set[str]) -> None:
        """Mirrors configurations by their digests. Missing configurations wait. Raises MirrorError."""
        waiting = self._memory.configurations
        for digest in sorted(digests - self._written_configurations):
            piece = configurations.configuration_object(self.ledger, digest)
            if piece is not None:
                self._put(piece)
                self._written_configurations.add(digest)
                waiting.pop(digest, None)
                self._waiting_since.pop(digest, None)
            elif len(waiting) < MAX_WAITING:
                waiting.setdefault(digest, time.time_ns() // 1000)
                self._waiting_since.setdefault(digest, time.monotonic())

    def _mirror_tiles(self, size: int) -> None:
        for path in aggregate.full_tiles(self._memory.tiles_size, size):
            content = self.auditor.read(path)
            if content is not None:
                self._put(MirrorObject.from_bytes(f"aggregate/{path}", content))
        if self._memory.tiles_size // aggregate.TILE_WIDTH < size // aggregate.TILE_WIDTH:
            self._memory.tiles_size = size
            self._save()

    def _mirror_checkpoints(self, size: int, note: str) -> None:
        pieces = checkpoints.checkpoint_objects(self.auditor, self.ledger, size, note)
        for piece in pieces:
            if piece.key not in self._written_checkpoints:
                self._put(piece)
        self._written_checkpoints = {piece.key for piece in pieces}
        if self._memory.configurations:
            self._mirror_configurations(set(self._memory.configurations))
            self._save()

    def _put(self, piece: MirrorObject) -> None:
        if self._stop.is_set():
            raise _StoppedError
        try:
            if self.target.put(piece):
                self.totals.objects += 1
                self.totals.bytes += piece.length
        except ConflictError:
            self._add_finding(
                "mirror_conflict",
                f"{piece.key} already exists in the mirror, and differs from the verified data",
            )

    def _add_finding(self, code: str, message: str) -> None:
        if self._memory.add_finding(self._finding(code, message, time.time_ns() // 1000)):
            log.error("%s: %s [%s]", self.name, message, code)
            self._save()

    def _finding(self, code: str, message: str, since: int) -> dict[str, Any]:
        verdict = _VERDICTS.get(code, "incomplete")
        return {
            "code": code,
            "origin": self.name,
            "shard": "",
            "since": since,
            "message": message,
            "verdict": verdict,
        }

    def _save(self) -> None:
        try:
            self._memory.save()
        except OSError as error:
            # The progress may be lost.
            log.warning("cannot store the progress of %s: %s", self.name, error.strerror)
