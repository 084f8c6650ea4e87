"""An index of the records that an auditor has accepted. Its errors do not affect the auditor: they are
reported, and the work is retried."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from proofgate.index import schema
from proofgate.index.errors import IndexUnusableError
from proofgate.index.indexer import RETRY_DELAY_SECONDS, Indexer
from proofgate.index.writer import IndexWriter
from proofgate.key_statements import key_chain

log = logging.getLogger("proofgate.index")

#: Bytes that an index leaves free on its volume. On Kubernetes, this volume also has the auditor's state and the
#: access log, which may have 256 MiB.
RESERVE_BYTES = 384 << 20
#: Seconds between two checks for days that are too old.
PRUNE_SECONDS = 3600.0


@dataclass(frozen=True)
class IndexStatus:
    """The progress of an index: records that were read, records that wait, and the problem that stops it.
    `code` is empty without a problem."""

    records: int = 0
    records_behind: int = 0
    code: str = ""
    message: str = ""


class AuditedIndex:
    """Updates an index of the records that an auditor has accepted, in a separate thread.

    `keep_days` is the number of days of exchanges that stay in the index, None for all. `reserve` is in
    bytes. An index that was started with an earlier key in the succession of `ledger` is continued.
    """

    def __init__(
        self,
        directory: Path,
        ledger_key: str,
        keep_days: int | None = None,
        reserve: int = RESERVE_BYTES,
        ledger: Path | None = None,
    ) -> None:
        self.directory = directory
        self._ledger_key, self._keep_days, self._reserve = ledger_key, keep_days, reserve
        self._ledger = ledger
        self._waiting: dict[str, str] = {}
        self._condition = threading.Condition()
        self._ending = False
        self._problem: IndexUnusableError | None = None
        self._indexer: Indexer | None = None
        self._pruned: float | None = None
        self._thread = threading.Thread(target=self._run, name="index")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._ending = True
            self._condition.notify()
        self._thread.join()

    def enqueue(self, accepted: list[tuple[str, str]]) -> None:
        """Queues logs with newly accepted records, as pairs of directory and checkpoint note. Does not block."""
        if accepted:
            with self._condition:
                self._waiting.update(accepted)
                self._condition.notify()

    def status(self) -> IndexStatus:
        """The current status."""
        indexer, problem = self._indexer, self._problem
        if indexer is None:
            return IndexStatus() if problem is None else IndexStatus(0, 0, problem.code, str(problem))
        refused = list(indexer.problems.values())
        if problem is None and refused:
            problem = IndexUnusableError(refused[0], "index_log_refused")
        code, message = ("", "") if problem is None else (problem.code, str(problem))
        return IndexStatus(indexer.records, indexer.records_behind, code, message)

    def rejected_origins(self) -> list[str]:
        """The origins of logs that do not match what was accepted."""
        indexer = self._indexer
        return [] if indexer is None else list(indexer.problems)

    def _run(self) -> None:
        while not self._ending:
            try:
                line = () if self._ledger is None else key_chain(self._ledger, self._ledger_key)
                with contextlib.closing(
                    IndexWriter.open(self.directory, self._ledger_key, line=line)
                ) as writer:
                    self._follow(writer)
            except IndexUnusableError as error:
                self._report_error(error)
            except Exception:
                log.exception("the index is behind, retrying in a minute")
                self._problem = IndexUnusableError("the index failed: see the log", "index_failed")
            with self._condition:
                self._condition.wait_for(lambda: self._ending, RETRY_DELAY_SECONDS)

    def _follow(self, writer: IndexWriter) -> None:
        """Reads the queued logs until the index is closed. Raises IndexUnusableError; the queue is kept."""
        self._indexer = indexer = Indexer(
            writer, self._ledger_key, should_stop=lambda: self._ending, before_batch=self._require_disk_space
        )
        while True:
            self._prune(writer)
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._ending, PRUNE_SECONDS)
                if self._ending:
                    return
                logs, self._waiting = self._waiting, {}
            try:
                # The oldest logs of a shard first, because an exchange may start in one log and end in a
                # later one.
                indexer.read(sorted(logs.items()))
            except BaseException:
                with self._condition:
                    self._waiting = {**logs, **self._waiting}
                raise
            self._problem = None

    def _require_disk_space(self) -> None:
        free = shutil.disk_usage(self.directory).free
        if free < self._reserve:
            raise IndexUnusableError(
                f"the volume of the index has {free >> 20} MiB left, and {self._reserve >> 20} "
                "MiB must stay free: enlarge the volume, or keep fewer days",
                "index_full",
            )

    def _prune(self, writer: IndexWriter) -> None:
        """Removes days that are too old both by the clock and by the newest exchange, so that a wrong time in
        one of them removes no newer day."""
        due = self._pruned is None or time.monotonic() - self._pruned >= PRUNE_SECONDS
        newest = writer.newest_day()
        if self._keep_days is None or not due or newest is None:
            return
        self._pruned = time.monotonic()
        today = schema.day_of(time.time_ns() // 1000)
        gone = writer.prune(min(today, newest) + 1 - self._keep_days)
        if gone:
            log.info("removed %d days from the index, which keeps %d days", gone, self._keep_days)

    def _report_error(self, error: IndexUnusableError) -> None:
        if self._problem is None or self._problem.code != error.code:
            log.error("the index is behind, retrying each minute: %s [%s]", error, error.code)
        self._problem = error
