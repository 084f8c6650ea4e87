"""Sends every exchange in the accepted records of an auditor to one sink, in a separate thread.

Delivery is at least once, because the progress is written after a batch was accepted. If the auditor is
killed or the sink fails during a batch, its events are sent again. The position of an exchange's last record
identifies duplicates.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofgate_schema.counts import format_count

from proofgate import _core
from proofgate.index.indexer import parse_note_head
from proofgate.siem.cursor import EventCursor
from proofgate.siem.events import events_in, record_fetcher
from proofgate.siem.sink import EventSink, SinkError

log = logging.getLogger("proofgate.siem")

#: Number of records that are read, and of events that are sent, at a time.
BATCH_RECORDS = 2000
#: Seconds after which exchanges that are not sent become a finding.
MAX_LAG_SECONDS = 600.0
_MAX_PAUSE = 60.0
#: Seconds before an unreadable log is read again.
_RETRY_SECONDS = 60.0


@dataclass
class StreamTotals:
    """Totals of a stream, for metrics."""

    events: int = 0
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class EventStream:
    """The stream to one sink."""

    sink: EventSink
    cursor: EventCursor
    ledger_key: str
    max_lag_seconds: float = MAX_LAG_SECONDS
    totals: StreamTotals = field(default_factory=StreamTotals)
    #: Number of accepted records of exchanges that are not sent yet.
    lag_records: int = 0
    _waiting: dict[str, str] = field(default_factory=dict)
    _lagging_since: float | None = None
    _failure: str | None = None
    _problems: dict[str, str] = field(default_factory=dict)
    #: Logs that could not be read, and when they are read again.
    _deferred: dict[str, str] = field(default_factory=dict)
    _deferred_until: float = 0.0
    _condition: threading.Condition = field(default_factory=threading.Condition)
    _stopping: bool = False

    @property
    def name(self) -> str:
        """The address of the sink."""
        return self.sink.name

    def start(self) -> None:
        """Starts the thread, which sends until `stop`. The end of the process does not wait for the thread,
        which may be sending."""
        threading.Thread(target=self._run, name="siem", daemon=True).start()

    def stop(self) -> None:
        """Starts no further work."""
        with self._condition:
            self._stopping = True
            self._condition.notify()

    def enqueue(self, accepted: list[tuple[str, str]]) -> None:
        """Queues logs with newly accepted records, as pairs of directory and note. Does not block."""
        if accepted:
            with self._condition:
                self._waiting.update(accepted)
                self._mark_lagging()
                self._condition.notify()

    def rejected_origins(self) -> list[str]:
        """The origins of logs that do not match what was accepted."""
        return [of for of, problem in list(self._problems.items()) if not problem.endswith("[siem_event]")]

    def lag_seconds(self) -> float:
        """Seconds for which events have waited to be sent; 0 if none waits."""
        since = self._lagging_since
        return 0.0 if since is None else time.monotonic() - since

    def findings(self) -> list[dict[str, Any]]:
        """Problems of the stream, in the format of the auditor's findings."""
        lag = self.lag_seconds()
        if lag < self.max_lag_seconds:
            return []
        why = self._failure or next((f"{of}: {said}" for of, said in list(self._problems.items())), None)
        message = f"exchanges have not been sent for {format_count(int(self.max_lag_seconds), 'second')}" + (
            f": {why}" if why else ""
        )
        since = time.time_ns() // 1000 - int(lag * 1e6)
        told = {"code": "siem_lags", "origin": self.name, "shard": "", "verdict": "incomplete"}
        return [{**told, "since": since, "message": message}]

    def _mark_lagging(self) -> None:
        if self._lagging_since is None:
            self._lagging_since = time.monotonic()

    def _run(self) -> None:
        tries = 0
        while True:
            with self._condition:
                rest = max(0.0, self._deferred_until - time.monotonic()) if self._deferred else None
                self._condition.wait_for(lambda: self._waiting or self._stopping, rest)
                if self._stopping:
                    return
                if self._deferred and time.monotonic() >= self._deferred_until:
                    self._waiting, self._deferred = {**self._deferred, **self._waiting}, {}
                left, self._waiting = self._waiting, {}
            try:
                self.send(left)
                tries = 0
            except SinkError as error:
                tries += 1
                self.totals.failures[error.code] += 1
                if self._failure != str(error):
                    log.warning("%s: %s [%s]", self.name, error, error.code)
                self._failure = str(error)
            except Exception as error:
                tries += 1
                self.totals.failures["siem_failed"] += 1
                self._failure = f"sending failed ({type(error).__name__}) [siem_failed]"
                log.exception("%s: sending failed, retrying", self.name)
            with self._condition:
                if tries:
                    self._waiting = {**left, **self._waiting}
                    self._condition.wait_for(lambda: self._stopping, min(2.0 ** (tries - 1), _MAX_PAUSE))
                elif left:
                    self._deferred |= left
                    self._deferred_until = time.monotonic() + _RETRY_SECONDS
                if not self._waiting and not self._deferred:
                    self._lagging_since = None

    def send(self, left: dict[str, str]) -> None:
        """Sends the remaining exchanges of logs, each up to its note. Removes completed logs from `left`.

        Raises SinkError. The problem of a log is reported, and the log stays in `left`.
        """
        # The oldest logs of a shard first, because an exchange may start in one log and end in a later one.
        order = sorted(left.items())
        self.cursor.update_notes([(parse_note_head(note)[0], note) for _, note in order])
        self.lag_records = sum(
            max(0, parse_note_head(note)[1] - self.cursor.position(parse_note_head(note)[0])[1])
            for _, note in order
        )
        for directory, note in order:
            origin, size = parse_note_head(note)
            try:
                if self.cursor.position(origin)[1] < size:
                    self._send_log(Path(directory), origin, note)
                self._problems.pop(origin, None)
            except _core.LedgerError as error:
                if error.code != "log_removed":
                    self._report_problem(origin, f"{error} [{error.code}]")
                    continue
                # The log was legitimately removed before it was read, so there is nothing to send.
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                # Later events of this log wait, because no event may be skipped. Other logs do not wait.
                self.totals.failures["siem_event"] += 1
                why = f"an exchange cannot be written in this format ({type(error).__name__}) [siem_event]"
                self._report_problem(origin, why, error)
                continue
            del left[directory]

    def _send_log(self, directory: Path, origin: str, note: str) -> None:
        place, before = self.cursor.position(origin)
        reader = _core.ExchangeReader(str(directory), note, self.ledger_key, place, BATCH_RECORDS)
        fetch = record_fetcher(directory, origin, self.ledger_key, self.cursor.note)
        while not self._stopping and (batch := reader.next()) is not None:
            events = list(events_in(batch, origin, fetch))
            if events:
                self.sink.send(events)
            self.cursor.advance(origin, batch.place, batch.size)
            self.totals.events += len(events)
            self.lag_records = max(0, self.lag_records - (batch.size - before))
            before = batch.size
            if self._failure is not None:
                log.info("%s: it accepts events again", self.name)
                self._failure = None

    def _report_problem(self, origin: str, problem: str, cause: Exception | None = None) -> None:
        if self._problems.get(origin) != problem:
            log.error("%s: cannot send %s now: %s", self.name, origin, problem, exc_info=cause)
        self._problems[origin] = problem
