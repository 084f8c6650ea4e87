"""Copies the accepted records of workers' logs in a separate thread, and passes them on to readers.

It never delays the audit: a log that cannot be copied waits, and becomes a finding if it waits for long. A
copy that a reader refuses is made again.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import logging
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from proofgate.auditor.worker_files import UnreadableError, WorkerError
from proofgate.replica import log_ages
from proofgate.replica.log_copy import LEDGER_FOLDER, CopyError, LedgerSource, LogCopy
from proofgate.replica.mirror_interface import CopyStatus, ReplicaMirror, RequiredLog
from proofgate.replica.shared_files import SharedFiles
from proofgate.replica.workers import Workers, shard_of

log = logging.getLogger("proofgate.replica")

#: Free bytes that copies leave on their volume: more than the index leaves, so that the index continues longer.
RESERVE_BYTES = 512 << 20
#: Seconds after which data that is not copied becomes a finding.
MAX_LAG_SECONDS = 600.0
#: Seconds between two rounds if there is no new data.
ROUND_INTERVAL_SECONDS = 1.0
#: Maximum seconds of a round for one worker.
WORKER_TIMEOUT_SECONDS = 20.0
#: Number of logs for which one round checks whether their workers removed them.
_REMOVAL_CHECKS_PER_ROUND = 8
#: Seconds before a copy that a reader refused is made again: readers retry such a log after a minute.
_REBUILD_DELAY_SECONDS = 90.0
#: Minimum seconds between two rebuilds of one copy, and between two checks for copies that are too old.
_REBUILD_INTERVAL_SECONDS = 3600.0
#: Seconds before a log is read again if its worker does not have all accepted records.
_LOG_RETRY_SECONDS = 30.0
#: Seconds between two searches for copies that are too old on a full volume.
_FULL_RETRY_SECONDS = 60.0

AcceptedLogs = list[tuple[str, str]]


class VolumeFullError(Exception):
    """The volume of the copies is full."""


class Replica:
    """The copies of one auditor's logs, in `root`: `root/ledger` has the layout of a ledger.

    `workers` returns the URL of each shard's worker, and `open_worker` reads from one. `statements` has the
    ledger's statements of key succession by their files' names. Copies of logs that ended more than
    `keep_days` ago are removed; None keeps all of them. `reserve` is in bytes.
    """

    def __init__(
        self,
        root: Path,
        keys: tuple[str, str | None],
        workers: Callable[[], Mapping[str, str]],
        open_worker: Callable[[str], LedgerSource],
        statements: Callable[[], Mapping[str, bytes]] = dict,
        *,
        keep_days: int | None = None,
        reserve: int = RESERVE_BYTES,
        patience: float = MAX_LAG_SECONDS,
    ) -> None:
        """`keys` are the verifying keys of the ledger and, if there is one, of the retention job."""
        self.ledger = ledger_folder(root)
        self._root, self._keys, self._listed = root, keys, workers
        self._workers = Workers(workers, open_worker)
        self._statements, self._keep_days = statements, keep_days
        self._reserve, self._patience = reserve, patience
        #: Functions that receive the directories and signed notes of copied logs.
        self.on_copied: list[Callable[[AcceptedLogs], None]] = []
        #: Functions that return the origins of logs that a reader cannot read as accepted.
        self.rejected_by_readers: list[Callable[[], Collection[str]]] = []
        #: Functions that return the number of records that a reader has of each log, by origin.
        self.read_counts: list[Callable[[], Mapping[str, int]]] = []
        #: Mirrors, which read whole ended logs.
        self.mirrors: Sequence[ReplicaMirror] = []
        self.bytes_copied = 0
        self.failure: str | None = None
        self._offered: dict[str, str] = {}
        #: The newest note of each log.
        self._notes: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._resting: dict[str, float] = {}
        self._refusals: dict[str, float] = {}
        self._made_again: dict[str, float] = {}
        self._times_made_again: Counter[str] = Counter()
        #: Why the last attempt to copy a log failed, by log.
        self._reasons: dict[str, str] = {}
        self._standing: dict[RequiredLog, CopyStatus] = {}
        self._wanted: set[str] = set()
        #: Logs that are copied again only for mirrors, after all other logs.
        self._for_mirrors: set[str] = set()
        self._last_looked = ""
        self._shared = SharedFiles(self.ledger, self._require_free_space)
        self._configurations_due = 0.0
        self._prune_due = 0.0
        self._condition = threading.Condition()
        self._ending = False
        self.ledger.mkdir(mode=0o700, parents=True, exist_ok=True)

    def enqueue(self, accepted: AcceptedLogs) -> None:
        """Queues logs with newly accepted records, as pairs of directory and note. Does not block."""
        if accepted:
            with self._condition:
                self._offered.update(accepted)
                self._condition.notify()

    def start(self) -> None:
        """Starts the thread, which copies until `stop`. The end of the process does not wait for the thread,
        which may be reading."""
        threading.Thread(target=self._run, name="replica", daemon=True).start()

    def stop(self) -> None:
        """Starts no further work."""
        with self._condition:
            self._ending = True
            self._condition.notify()

    def lag_seconds(self) -> float:
        """Seconds for which a log of a listed worker has waited to be copied; 0 if none waits."""
        workers = self._listed()
        # Mirrors report their own waiting logs.
        mirrored = set(self._for_mirrors)
        waits = [
            since
            for place, since in list(self._since.items())
            if shard_of(place) in workers and place not in mirrored
        ]
        return time.monotonic() - min(waits) if waits else 0.0

    def findings(self) -> list[dict[str, Any]]:
        """Problems of the copies, in the format of the core's findings."""
        lag = self.lag_seconds()
        if lag == 0 or lag < self._patience:
            return []
        why = f": {self.failure}" if self.failure else ""
        message = f"accepted records have waited to be copied for {int(self._patience)} seconds{why}"
        since = time.time_ns() // 1000 - int(lag * 1e6)
        told = {"code": "replica_lags", "origin": "auditor", "shard": "", "verdict": "incomplete"}
        return [{**told, "since": since, "message": message}]

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._offered or self._ending, ROUND_INTERVAL_SECONDS)
                if self._ending:
                    return
            try:
                self.run_once()
            except Exception as error:
                self._report_failure(f"copying failed ({type(error).__name__})")
                log.exception("copying failed, retrying")
                with self._condition:
                    self._condition.wait_for(lambda: self._ending, ROUND_INTERVAL_SECONDS)

    def run_once(self) -> None:
        """Copies the waiting logs, as far as workers and the volume permit."""
        with self._condition:
            offered, self._offered = self._offered, {}
        now = time.monotonic()
        for directory, note in offered.items():
            place = "/".join(Path(directory).parts[-2:])
            if place not in self._notes:
                self._prune_due = 0.0
            self._notes[place] = note
            self._since.setdefault(place, now)
        self._workers.start_round()
        try:
            self._prune()
            self._check_for_removals()
            self._shared.copy_statements(self._statements(), self._keys[0])
            self._rebuild_rejected()
            try:
                self._copy_logs()
            finally:
                # Copies that mirrors have can be removed, which frees space.
                self._update_statuses()
            if not self._since:
                self._report_failure(None)
        except VolumeFullError as error:
            self._prune_due = min(self._prune_due, now + _FULL_RETRY_SECONDS)
            self._report_failure(str(error))
        except OSError as error:
            reason = "the volume is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
            self._report_failure(f"copies cannot be written: {reason}")

    def _copy_logs(self) -> None:
        """Copies the waiting logs. A log waits for its worker's earlier logs of the shard, to which its
        records may refer."""
        failed: set[str] = set()
        for place in sorted(self._since, key=lambda place: (place in self._for_mirrors, place)):
            shard = shard_of(place)
            if self._ending or shard in failed or self._resting.get(place, 0.0) > time.monotonic():
                continue
            try:
                source = self._workers.source(place)
                self._copy_log(place, source)
                self._resting.pop(place, None)
                self._reasons.pop(place, None)
            except (CopyError, FileNotFoundError) as error:
                # The auditor reports problems of the worker's log. Other logs do not wait for it.
                self._resting[place] = time.monotonic() + _LOG_RETRY_SECONDS
                self._reasons[place] = str(error)
                self._report_failure(f"{place}: {error}")
            except (WorkerError, UnreadableError) as error:
                failed.add(shard)
                self._workers.mark_failed(place)
                self._report_failure(f"the worker of shard {shard}: {error}")
            except VolumeFullError as error:
                self._reasons[place] = str(error)
                raise

    def _copy_log(self, place: str, source: LedgerSource | None) -> None:
        note = self._notes[place]
        copy = LogCopy(self._root, place, self._require_free_space)
        size = checkpoint_size(note)
        is_new = not copy.has_records(size)
        if is_new:
            if source is None:
                return
            if not copy.apply_removal(source, note, *self._keys):
                before = copy.cursor.records
                try:
                    copy.copy_records(source, size)
                finally:
                    if copy.cursor.records > before:
                        log.debug("%s: %d of %d records are copied", place, copy.cursor.records, size)
        if not copy.cursor.removed:
            for notify in self.on_copied:
                notify([(str(self.ledger / place), note)])
        self._since.pop(place, None)
        # Readers do not wait for configurations.
        self._shared.request_configurations(copy.configurations)
        if source is not None:
            if is_new and self.mirrors and (copy.cursor.sealed or place in self._wanted):
                # The worker may be about to end, and data that was not copied would be lost.
                copy.copy_notes(source)
            self._shared.copy_configurations(source)

    def status(self, wanted: RequiredLog) -> CopyStatus:
        """The status of the copy of a required log at the last round."""
        return self._standing.get(wanted, CopyStatus(reason="the copy has not been checked yet"))

    def _update_statuses(self) -> None:
        """Completes the copies that mirrors require, and records their status."""
        wanted = {one for mirror in self.mirrors for one in mirror.required_logs()}
        self._standing = {one: self._complete_copy(one) for one in sorted(wanted)}
        self._wanted = {one.log_path for one in wanted}
        self._for_mirrors &= self._wanted
        if not self.mirrors or time.monotonic() < self._configurations_due:
            return
        self._configurations_due = time.monotonic() + _LOG_RETRY_SECONDS
        for source in self._workers.responding_sources():
            with contextlib.suppress(WorkerError, UnreadableError):
                self._shared.copy_configurations(source)

    def _complete_copy(self, wanted: RequiredLog) -> CopyStatus:
        again = self._times_made_again[wanted.log_path]
        before = self._standing.get(wanted)
        if before is not None and before.is_complete and before.rebuild_count == again:
            return before
        copy = LogCopy(self._root, wanted.log_path, self._require_free_space)
        is_gone, why = False, ""
        try:
            is_gone, why = self._advance(copy, wanted)
        except (CopyError, FileNotFoundError) as error:
            why = str(error)
        except (WorkerError, UnreadableError) as error:
            self._workers.mark_failed(wanted.log_path)
            why = f"the worker of shard {shard_of(wanted.log_path)}: {error}"
        except OSError as error:
            why = f"the copy cannot be written: {error.strerror}"
        is_whole = _is_complete(copy, wanted)
        return CopyStatus(is_whole, is_gone, "" if is_whole else why, again)

    def _advance(self, copy: LogCopy, wanted: RequiredLog) -> tuple[bool, str]:
        """Copies the files that only mirrors need. Returns whether the log is missing at its worker, and
        otherwise why the copy is incomplete. Raises OSError and CopyError."""
        place, size, removed = wanted
        if removed:
            why = "the files that remain after its removal are not copied"
        elif copy.cursor.records >= size:
            why = "its checkpoints are not copied"
        else:
            why = self._reasons.get(place, f"{copy.cursor.records} of its {size} records are copied")
        source, note = self._workers.source(place), self._notes.get(place)
        if _is_complete(copy, wanted) or note is None:
            return False, why
        if source is None:
            return False, f"{why}; {self._workers.absence_reason(place)}"
        if not self._workers.has_log(source, place):
            if removed or copy.cursor.records < size:
                return True, why
            copy.save_checkpoint(note)
        elif removed:
            copy.apply_removal(source, note, *self._keys)
        elif copy.cursor.records >= size:
            copy.copy_notes(source)
        elif place not in self._since:
            # The copy was removed since, because it was too old.
            self._since[place] = time.monotonic()
            self._for_mirrors.add(place)
        return False, why

    def _check_for_removals(self) -> None:
        """Checks for some copied logs, different ones in each round, whether their workers removed them."""
        places = sorted(self._notes)
        first = bisect.bisect_right(places, self._last_looked)
        due = [*places[first:], *places[:first]][:_REMOVAL_CHECKS_PER_ROUND]
        for place in due:
            self._last_looked = place
            if self._resting.get(place, 0.0) > time.monotonic():
                continue
            try:
                source = self._workers.source(place)
                copy = LogCopy(self._root, place, self._require_free_space)
                if source is not None and copy.cursor.records and not copy.cursor.removed:
                    copy.apply_removal(source, self._notes[place], *self._keys)
            except (WorkerError, UnreadableError):
                self._workers.mark_failed(place)
            except (CopyError, FileNotFoundError) as error:
                # The auditor reports problems of the worker's log.
                self._resting[place] = time.monotonic() + _LOG_RETRY_SECONDS
                log.debug("%s: %s", place, error)

    def _rebuild_rejected(self) -> None:
        """Discards copies that a reader has refused for a while, so that they are made again."""
        now = time.monotonic()
        readers = [*self.rejected_by_readers, *(mirror.rejected_logs for mirror in self.mirrors)]
        refused = {"/".join(origin.split("/")[-2:]) for tell in readers for origin in tell()}
        self._refusals = {place: self._refusals.get(place, now) for place in refused}
        for place, since in self._refusals.items():
            due = now - self._made_again.get(place, float("-inf")) >= _REBUILD_INTERVAL_SECONDS
            due = due and self._workers.has_worker(place)
            if place in self._notes and due and now - since >= _REBUILD_DELAY_SECONDS:
                log.warning("%s: its copy does not verify, and the log is copied again", place)
                self._made_again[place] = now
                self._times_made_again[place] += 1
                LogCopy(self._root, place).discard()
                self._since.setdefault(place, now)

    def _require_free_space(self, length: int) -> None:
        free = shutil.disk_usage(self._root).free
        if free - length < self._reserve:
            raise VolumeFullError(
                f"the auditor's volume has {free >> 20} MiB left, and {self._reserve >> 20} MiB "
                "must stay free: enlarge the volume, or keep fewer days"
            )
        self.bytes_copied += length

    def _prune(self) -> None:
        """Removes the copies of logs that ended too long ago, and skips such logs."""
        if self._keep_days is None:
            return
        if time.monotonic() < self._prune_due:
            return
        self._prune_due = time.monotonic() + _REBUILD_INTERVAL_SECONDS
        for place in self._expired_logs():
            self._since.pop(place, None)
            copy = LogCopy(self._root, place)
            if copy.cursor.records or copy.folder.exists():
                copy.discard()
                log.info(
                    "%s: its copy was removed, because it is older than the retention of the index", place
                )

    def _expired_logs(self) -> list[str]:
        """Logs that are older than the retained days and that all readers have read."""
        read = [tell() for tell in self.read_counts]
        wanted = {one.log_path for mirror in self.mirrors for one in mirror.required_logs()}
        found = []
        for place in log_ages.superseded_logs(self._notes, self._keep_days or 0):
            origin, size = self._notes[place].split("\n", 1)[0], checkpoint_size(self._notes[place])
            is_read = all(of.get(origin, 0) >= size for of in read)
            if is_read and place not in wanted and self._is_mirrored(place):
                found.append(place)
        return found

    def _is_mirrored(self, place: str) -> bool:
        removed = bool(self.mirrors) and LogCopy(self._root, place).cursor.removed
        return all(mirror.has_log(place, removed=removed) for mirror in self.mirrors)

    def _report_failure(self, failure: str | None) -> None:
        if failure is not None and failure != self.failure:
            log.warning("%s [replica_lags]", failure)
        self.failure = failure


def _is_complete(copy: LogCopy, wanted: RequiredLog) -> bool:
    return copy.cursor.removed if wanted.removed else copy.is_complete(wanted.size)


def ledger_folder(root: Path) -> Path:
    """Returns the folder of the copies below `root`, with the layout of a ledger."""
    return root / LEDGER_FOLDER


def checkpoint_size(note: str) -> int:
    """Returns the number of records that a checkpoint covers."""
    return int(note.split("\n", 2)[1])
