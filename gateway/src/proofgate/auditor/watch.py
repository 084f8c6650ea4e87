"""Polls a ledger's auditor while the process runs, and counts the results."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from proofgate import _core
from proofgate.times import ClockStep, SteadyClock

if TYPE_CHECKING:
    from proofgate.auditor.served_ledger import ServedLedger
    from proofgate.mirror.mirror import Mirror
    from proofgate.replica.replica import Replica
    from proofgate.siem.stream import EventStream

log = logging.getLogger("proofgate.auditor")

#: Seconds between two polls if no data is left to read.
POLL_SECONDS = 1.0
#: Seconds between two log lines about the same error of polls.
FAILURE_LOG_SECONDS = 60.0
#: Maximum bytes that one poll reads. Responses to readers are at most one poll old.
MAX_POLL_BYTES = 64 << 20
#: Seconds between two log lines about the progress of a long first read.
PROGRESS_SECONDS = 10.0
#: Minimum seconds of a clock jump that is reported; smaller jumps are normal corrections of a clock.
MIN_CLOCK_STEP_SECONDS = 60.0
#: Seconds for which a clock jump is reported.
CLOCK_STEP_FINDING_SECONDS = 3600.0
_MICROSECONDS = 1_000_000


class Destination(Protocol):
    """A destination to which a separate thread copies or sends accepted data."""

    def start(self) -> None:
        """Starts the thread, which runs until `stop`."""

    def stop(self) -> None:
        """Signals the thread to end, without waiting for it."""

    def findings(self) -> list[dict[str, Any]]:
        """The findings, in the core's form."""


@dataclass
class PollTotals:
    """Totals of all polls, for metrics."""

    records: int = 0
    bytes: int = 0
    scrubbed_records: int = 0
    scrubbed_bytes: int = 0
    scrub_rounds: int = 0
    entries: int = 0
    records_behind: int = 0
    removed: int = 0
    failures: int = 0


@dataclass
class LedgerWatcher:
    """One auditor and the loop that polls it. `scrub_rate` is in bytes per second."""

    auditor: _core.Auditor
    scrub_rate: int
    totals: PollTotals = field(default_factory=PollTotals)
    #: Returns the statements of succession of the ledger's keys.
    statements: Callable[[], list[str]] = list
    #: Functions that are called after each poll with the logs in which more was accepted: directories and
    #: signed notes. The first call lists all logs.
    on_accepted: list[Callable[[list[tuple[str, str]]], None]] = field(default_factory=list)
    #: Returns the head of the access log, which each poll passes to the auditor. None without a port for
    #: readers.
    access_log_head: Callable[[], tuple[int, int, bytes]] | None = None
    #: Returns the findings about the access log.
    reader_port_findings: Callable[[], list[dict[str, Any]]] = list
    #: Mirrors to which accepted data is copied.
    mirrors: list[Mirror] = field(default_factory=list)
    #: Streams to which accepted exchanges are sent.
    streams: list[EventStream] = field(default_factory=list)
    #: The ledger folders that workers serve, combined into one ledger.
    served_ledger: ServedLedger | None = None
    #: Copies of the accepted data of workers, for readers that need a ledger of files.
    replica: Replica | None = None
    #: Time of the last successful poll, in Unix seconds; 0 before the first.
    last_poll: float = 0.0
    #: Clock for measuring durations, because the system's clock can be set back.
    clock: SteadyClock = field(default_factory=SteadyClock)
    #: The last clock jump that was detected, and its time in monotonic seconds.
    _last_clock_step: tuple[ClockStep, float] | None = None
    _polled_at: float | None = None
    #: Why the whole ledger cannot be read, as the text of a finding; None if it can be read.
    unreadable_reason: str | None = None
    #: Number of tree heads that wait for a quorum of witnesses, and the time in monotonic seconds at which
    #: they were signed.
    _unpublished_since: tuple[int, float] = (0, 0.0)
    _logged_findings: set[tuple[str, str]] = field(default_factory=set)
    #: The error of the last poll, and the time at which it was logged, in monotonic seconds. None if it
    #: succeeded.
    _logged_failure: tuple[str, float] | None = None
    _access_head_submitted: bool = False
    _scrubbed_until: float = field(default_factory=time.monotonic)
    _progress_reported_at: float = field(default_factory=time.monotonic)

    def poll(self, budget: int = MAX_POLL_BYTES, scrub: int | None = None) -> dict[str, Any]:
        """Polls once. Raises the core's AuditorError; data that was read before the error is not lost."""
        now = time.monotonic()
        if scrub is None:
            scrub = int(self.scrub_rate * min(now - self._scrubbed_until, POLL_SECONDS * 2))
            self._scrubbed_until = now
        now_us = self._check_clock()
        if self.access_log_head is not None:
            self.auditor.set_access_log_head(*self.access_log_head())
        if self.served_ledger is not None:
            self.auditor.set_worker_states(self.served_ledger.start_pass())
        try:
            done: dict[str, Any] = json.loads(self.auditor.poll(now_us, budget, scrub))
        finally:
            self._report_findings()
            if self.on_accepted:
                accepted = self.auditor.accepted(now_us if self._access_head_submitted else 0)
                self._access_head_submitted = True
                for notify in self.on_accepted:
                    notify(accepted)
        totals = self.totals
        totals.records += done["records"]
        totals.bytes += done["bytes"]
        totals.scrubbed_records += done["scrubbed_records"]
        totals.scrubbed_bytes += done["scrubbed_bytes"]
        totals.scrub_rounds, totals.entries = done["scrub_rounds"], done["entries"]
        totals.records_behind, totals.removed = done["unread_records"], done["removed"]
        if self.published_head_count() >= self._unpublished_since[0]:
            self._unpublished_since = (totals.entries, time.monotonic())
        self.last_poll, self._polled_at = time.time(), time.monotonic()
        self._report_progress()
        return done

    def poll_age(self) -> float | None:
        """Seconds since the last successful poll; None before the first."""
        return None if self._polled_at is None else time.monotonic() - self._polled_at

    async def follow(self) -> None:
        """Polls until cancelled. A failed poll is logged and repeated."""
        while True:
            busy = False
            try:
                done = await asyncio.to_thread(self.poll)
                busy = done["unread_records"] > 0 and done["bytes"] >= MAX_POLL_BYTES
                self._logged_failure = None
            except _core.ProofgateError as error:
                self.totals.failures += 1
                self._log_failure(error)
            await asyncio.sleep(0 if busy else POLL_SECONDS)

    def _log_failure(self, error: _core.ProofgateError) -> None:
        """Logs an error immediately, then once a minute while it lasts, because there is a poll each
        second."""
        now, message = time.monotonic(), str(error)
        if self._logged_failure is not None:
            logged, logged_at = self._logged_failure
            if logged == message and now - logged_at < FAILURE_LOG_SECONDS:
                return
        self._logged_failure = (message, now)
        log.error("the poll failed and will be retried: %s [%s]", error, error.code)

    def findings(self) -> list[dict[str, Any]]:
        """All findings, oldest first."""
        found: list[dict[str, Any]] = self.findings_report()["findings"]
        return found

    def findings_report(self) -> dict[str, Any]:
        """`findings`, and the number of findings that were omitted for lack of space (`left_out`)."""
        told: dict[str, Any] = json.loads(self.auditor.findings())
        told["findings"] += self._clock_findings() + self.reader_port_findings()
        told["findings"] += [found for outlet in self.destinations() for found in outlet.findings()]
        return told

    def _check_clock(self) -> int:
        now_us, step = self.clock.read()
        if step is not None:
            log.warning("%s", step.describe())
            if abs(step.seconds) >= MIN_CLOCK_STEP_SECONDS:
                self._last_clock_step = (step, time.monotonic())
        return now_us

    def _clock_findings(self) -> list[dict[str, Any]]:
        if (
            self._last_clock_step is None
            or time.monotonic() - self._last_clock_step[1] >= CLOCK_STEP_FINDING_SECONDS
        ):
            return []
        step = self._last_clock_step[0]
        message = f"{step.describe()}: the times of findings and entries jump at this point"
        # The finding is about the auditor's machine, not about a log.
        of = {"code": "clock_step", "origin": "auditor", "shard": "", "verdict": "incomplete"}
        return [{**of, "since": step.actual, "message": message}]

    def destinations(self) -> list[Destination]:
        """The copies, the mirrors and the streams."""
        return [*([self.replica] if self.replica else []), *self.mirrors, *self.streams]

    def heads(self) -> list[dict[str, Any]]:
        """The state of each shard at the last poll."""
        heads: list[dict[str, Any]] = json.loads(self.auditor.heads())
        return heads

    def published_head_count(self) -> int:
        """Number of tree heads under the published checkpoint; 0 before there is one."""
        return (self.auditor.checkpoint() or (0, ""))[0]

    def cosigning_lag(self) -> float:
        """Seconds for which tree heads have waited for a quorum of witnesses to be published; 0 if none
        waits."""
        size, since = self._unpublished_since
        return max(0.0, time.monotonic() - since) if size > self.published_head_count() else 0.0

    def witnesses(self) -> list[dict[str, Any]]:
        """The status of the policy's witnesses."""
        standing: list[dict[str, Any]] = json.loads(self.auditor.witnesses())
        return standing

    def _report_findings(self) -> None:
        found = {(finding["code"], finding["origin"]): finding for finding in self.findings()}
        # A finding about a single unreadable log or shard names the shard; one about the whole ledger does
        # not.
        unreadable = (of for of in found.values() if of["code"] == "unreadable" and not of["shard"])
        self.unreadable_reason = next((str(of["message"]) for of in unreadable), None)
        if self.served_ledger is not None and not any(self.served_ledger.reachable_by_shard().values()):
            self.unreadable_reason = "no worker answers"
        for key in found.keys() - self._logged_findings:
            finding = found[key]
            log.error("%s: %s: %s [%s]", finding["verdict"], finding["origin"], finding["message"], key[0])
        for code, origin in self._logged_findings - found.keys():
            log.warning("resolved: %s [%s]", origin, code)
        self._logged_findings = set(found)

    def _report_progress(self) -> None:
        now = time.monotonic()
        if self.totals.records_behind and now - self._progress_reported_at >= PROGRESS_SECONDS:
            self._progress_reported_at = now
            log.info("%d records verified, %d remain", self.totals.records, self.totals.records_behind)


def to_microseconds(value: float) -> int:
    """Converts seconds to the whole microseconds that the core expects."""
    return int(value * _MICROSECONDS)
