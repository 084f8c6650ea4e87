"""Updates an index with the signed records, log by log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from proofgate import _core
from proofgate.index.writer import LOG_ENDED, IndexWriter

log = logging.getLogger("proofgate.index")

#: Seconds before an unreadable log is read again, unless it has a newer checkpoint.
RETRY_DELAY_SECONDS = 60.0
#: Seconds between two log lines about progress.
PROGRESS_SECONDS = 10.0


@dataclass
class Indexer:
    """Reads logs into an index, one after the other."""

    writer: IndexWriter
    ledger_key: str
    #: Maximum number of records in a batch; None: the limit of the core.
    max_records: int | None = None
    #: Checked between two batches.
    should_stop: Callable[[], bool] = lambda: False
    #: Called before each batch. An exception stops the reading.
    before_batch: Callable[[], None] = lambda: None
    records: int = 0
    #: Number of signed records that were not read yet.
    records_behind: int = 0
    #: Problems of logs, by origin.
    problems: dict[str, str] = field(default_factory=dict)
    _retry_after: dict[str, tuple[str, float]] = field(default_factory=dict)
    _progress_reported_at: float = field(default_factory=time.monotonic)

    def read(self, logs: list[tuple[str, str]]) -> None:
        """Reads logs (directory and signed note) up to their notes. A problem with one log does not stop the
        others.

        Raises IndexUnusableError.
        """
        known = self.writer.indexed_sizes()
        sizes = {}
        for _, note in logs:
            origin, size = parse_note_head(note)
            sizes[origin] = max(0, size - min(known.get(origin, 0), size))
        self.records_behind = sum(sizes.values())
        for directory, note in logs:
            if self.should_stop():
                return
            origin, size = parse_note_head(note)
            noted, until = self._retry_after.get(origin, ("", 0.0))
            if known.get(origin, 0) in (LOG_ENDED, size) or (noted == note and time.monotonic() < until):
                continue
            try:
                self._read(directory, note, origin)
                self._retry_after.pop(origin, None)
                self.problems.pop(origin, None)
            except _core.LedgerError as error:
                self.problems[origin] = f"{error} [{error.code}]"
                self._retry_after[origin] = (note, time.monotonic() + RETRY_DELAY_SECONDS)
                log.error("%s", self.problems[origin])  # noqa: TRY400 - what happened is in the message

    def _read(self, directory: str, note: str, origin: str) -> None:
        place = self.writer.resume_position(origin)
        reader = _core.ExchangeReader(directory, note, self.ledger_key, place, self.max_records)
        before = 0 if place is None else int(place.partition(" ")[0])
        while not self.should_stop():
            self.before_batch()
            if (batch := reader.next()) is None:
                return
            self.writer.apply(reader.origin, note, batch)
            self.records += batch.size - before
            self.records_behind = max(0, self.records_behind - (batch.size - before))
            before = batch.size
            self._report_progress()

    def _report_progress(self) -> None:
        now = time.monotonic()
        if self.records_behind and now - self._progress_reported_at >= PROGRESS_SECONDS:
            self._progress_reported_at = now
            log.info("%d records read, %d are left", self.records, self.records_behind)


def parse_note_head(note: str) -> tuple[str, int]:
    """Returns origin and size from a note. The core verifies the note, before or after."""
    lines = note.split("\n", 2)
    return lines[0], int(lines[1])
