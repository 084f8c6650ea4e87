"""Brings an index up to what was signed: of a ledger, or of what an auditor has accepted of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from proofgate import _core
from proofgate.index.errors import IndexUnusableError
from proofgate.index.writer import ENDED, Writer

log = logging.getLogger("proofgate.index")

#: A log that could not be read is left alone for so long, unless something newer was signed of it.
REST_SECONDS = 60.0
#: How often long work says how far it is.
PROGRESS_SECONDS = 10.0


@dataclass
class Indexer:
    """Reads logs into an index, one after the other."""

    writer: Writer
    ledger_key: str
    #: Records in a batch at most; None for the core's own bound.
    most_records: int | None = None
    #: Asked between two batches.
    stopped: Callable[[], bool] = lambda: False
    records: int = 0
    #: Records that are signed and not read.
    behind: int = 0
    #: What was wrong with logs, by origin.
    problems: dict[str, str] = field(default_factory=dict)
    _resting: dict[str, tuple[str, float]] = field(default_factory=dict)
    _told: float = field(default_factory=time.monotonic)

    def read(self, logs: list[tuple[str, str]]) -> None:
        """Reads logs (directory and signed note) up to their notes. What is wrong with one does not stop
        others.

        Raises IndexUnusableError.
        """
        known = self.writer.known()
        sizes = {}
        for _, note in logs:
            origin, size = head(note)
            sizes[origin] = max(0, size - min(known.get(origin, 0), size))
        self.behind = sum(sizes.values())
        for directory, note in logs:
            if self.stopped():
                return
            origin, size = head(note)
            noted, until = self._resting.get(origin, ("", 0.0))
            if known.get(origin, 0) in (ENDED, size) or (noted == note and time.monotonic() < until):
                continue
            try:
                self._read(directory, note, origin)
                self._resting.pop(origin, None)
                self.problems.pop(origin, None)
            except _core.LedgerError as error:
                self.problems[origin] = f"{error} [{error.code}]"
                self._resting[origin] = (note, time.monotonic() + REST_SECONDS)
                log.error("%s", self.problems[origin])  # noqa: TRY400 - what happened is in the message

    def _read(self, directory: str, note: str, origin: str) -> None:
        place = self.writer.place(origin)
        reader = _core.ExchangeReader(directory, note, self.ledger_key, place, self.most_records)
        before = 0 if place is None else int(place.partition(" ")[0])
        while not self.stopped() and (batch := reader.next()) is not None:
            self.writer.apply(reader.origin, note, batch)
            self.records += batch.size - before
            self.behind = max(0, self.behind - (batch.size - before))
            before = batch.size
            self._tell()

    def _tell(self) -> None:
        now = time.monotonic()
        if self.behind and now - self._told >= PROGRESS_SECONDS:
            self._told = now
            log.info("%d records read, %d are left", self.records, self.behind)


def head(note: str) -> tuple[str, int]:
    """Origin and size that a note states. The core has verified the note, or will."""
    lines = note.split("\n", 2)
    return lines[0], int(lines[1])


class AuditedIndex:
    """Keeps an index of what an auditor has accepted, in a thread of its own."""

    def __init__(self, directory: Path, ledger_key: str) -> None:
        self.directory = directory
        self._ledger_key = ledger_key
        self._writer = Writer.open(directory, ledger_key)
        self._waiting: dict[str, str] = {}
        self._condition = threading.Condition()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="index")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._ending = True
            self._condition.notify()
        self._thread.join()
        self._writer.close()

    def offer(self, accepted: list[tuple[str, str]]) -> None:
        """Takes logs that were accepted further: directories and notes. Waits for nothing."""
        if accepted:
            with self._condition:
                self._waiting.update(accepted)
                self._condition.notify()

    def _run(self) -> None:
        indexer = Indexer(self._writer, self._ledger_key, stopped=lambda: self._ending)
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._ending)
                if self._ending:
                    return
                logs, self._waiting = self._waiting, {}
            try:
                # The oldest of a shard first: what ends in a later log began in an earlier one.
                indexer.read(sorted(logs.items()))
            except IndexUnusableError as error:
                log.error("the index is behind, and goes on in a minute: %s [%s]", error, error.code)  # noqa: TRY400
            except Exception:
                log.exception("the index is behind, and goes on in a minute")
            else:
                continue
            with self._condition:
                self._waiting = {**logs, **self._waiting}
                self._condition.wait_for(lambda: self._ending, REST_SECONDS)
