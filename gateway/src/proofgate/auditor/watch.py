"""Polls a ledger's auditor for as long as the process lives, and counts what it did."""

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
    """What brings on what was accepted, in a thread of its own."""

    def start(self) -> None:
        """Begins, until `stop`."""

    def stop(self) -> None:
        """Ends, without being waited for."""

    def findings(self) -> list[dict[str, Any]]:
        """The findings, in the core's form."""


@dataclass
class PollTotals:
    """What all polls did, for metrics."""

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
    """One auditor and its pace. `scrub_rate` is in bytes for each second."""

    auditor: _core.Auditor
    scrub_rate: int
    totals: PollTotals = field(default_factory=PollTotals)
    #: The statements by which the ledger's keys follow each other.
    statements: Callable[[], list[str]] = list
    #: Told after each poll which logs were accepted further: directories and signed notes. All of them at
    #: first.
    on_accepted: list[Callable[[list[tuple[str, str]]], None]] = field(default_factory=list)
    #: How the access log stands; each poll reports it.
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
    #: When a poll last ended well, in unix seconds; 0 before the first.
    last_poll: float = 0.0
    #: Clock for measuring durations, because the system's clock can be set back.
    clock: SteadyClock = field(default_factory=SteadyClock)
    #: The last clock jump that was detected, and its time in monotonic seconds.
    _last_clock_step: tuple[ClockStep, float] | None = None
    _polled_at: float | None = None
    #: Why the ledger as a whole cannot be read, as a finding says it; None while it can.
    unreadable_reason: str | None = None
    #: Heads that were signed at a time, in monotonic seconds: what a quorum of witnesses is waited for.
    _unpublished_since: tuple[int, float] = (0, 0.0)
    _logged_findings: set[tuple[str, str]] = field(default_factory=set)
    #: The error that the last poll ended with, and when it was logged, in monotonic seconds.
    _logged_failure: tuple[str, float] | None = None
    _access_head_submitted: bool = False
    _scrubbed_until: float = field(default_factory=time.monotonic)
    _progress_reported_at: float = field(default_factory=time.monotonic)

    def poll(self, budget: int = MAX_POLL_BYTES, scrub: int | None = None) -> dict[str, Any]:
        """One poll. Raises the core's AuditorError; what was read is not lost."""
        now = time.monotonic()
        if scrub is None:
            scrub = int(self.scrub_rate * min(now - self._scrubbed_until, POLL_SECONDS * 2))
            self._scrubbed_until = now
        now_us = self._check_clock()
        if self.access_log_head is not None:
            self.auditor.take_reads(*self.access_log_head())
        if self.served_ledger is not None:
            self.auditor.take_reach(self.served_ledger.start_pass())
        try:
            done: dict[str, Any] = json.loads(self.auditor.poll(now_us, budget, scrub))
        finally:
            self._report_findings()
            if self.on_accepted:
                accepted = self.auditor.accepted(now_us if self._access_head_submitted else 0)
                self._access_head_submitted = True
                for offer in self.on_accepted:
                    offer(accepted)
        totals = self.totals
        totals.records += done["records"]
        totals.bytes += done["bytes"]
        totals.scrubbed_records += done["scrubbed_records"]
        totals.scrubbed_bytes += done["scrubbed_bytes"]
        totals.scrub_rounds, totals.entries = done["scrub_rounds"], done["entries"]
        totals.records_behind, totals.removed = done["behind"], done["removed"]
        if self.published_head_count() >= self._unpublished_since[0]:
            self._unpublished_since = (totals.entries, time.monotonic())
        self.last_poll, self._polled_at = time.time(), time.monotonic()
        self._report_progress()
        return done

    def poll_age(self) -> float | None:
        """Seconds since a poll last ended well; None before the first."""
        return None if self._polled_at is None else time.monotonic() - self._polled_at

    async def follow(self) -> None:
        """Polls until it is cancelled. A failed poll is logged and repeated."""
        while True:
            busy = False
            try:
                done = await asyncio.to_thread(self.poll)
                busy = done["behind"] > 0 and done["bytes"] >= MAX_POLL_BYTES
                self._logged_failure = None
            except _core.ProofgateError as error:
                self.totals.failures += 1
                self._log_failure(error)
            await asyncio.sleep(0 if busy else POLL_SECONDS)

    def _log_failure(self, error: _core.ProofgateError) -> None:
        """Logs an error at once, and once a minute while it lasts: there is a poll each second."""
        now, message = time.monotonic(), str(error)
        if self._logged_failure is not None:
            logged, logged_at = self._logged_failure
            if logged == message and now - logged_at < FAILURE_LOG_SECONDS:
                return
        self._logged_failure = (message, now)
        log.error("the poll failed and will be retried: %s [%s]", error, error.code)

    def findings(self) -> list[dict[str, Any]]:
        """Everything that was found, the oldest first."""
        found: list[dict[str, Any]] = self.findings_report()["findings"]
        return found

    def findings_report(self) -> dict[str, Any]:
        """`findings`, and how many found no room (`left_out`)."""
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
        # It is of no log: of the machine that audits them.
        of = {"code": "clock_step", "origin": "auditor", "shard": "", "verdict": "incomplete"}
        return [{**of, "since": step.actual, "message": message}]

    def destinations(self) -> list[Destination]:
        """The copies, the mirrors and the streams."""
        return [*([self.replica] if self.replica else []), *self.mirrors, *self.streams]

    def heads(self) -> list[dict[str, Any]]:
        """How each shard stood at the last poll."""
        heads: list[dict[str, Any]] = json.loads(self.auditor.heads())
        return heads

    def published_head_count(self) -> int:
        """Heads under the published checkpoint; 0 before there is one."""
        return (self.auditor.checkpoint() or (0, ""))[0]

    def cosigning_lag(self) -> float:
        """Seconds for which heads have waited to be published, which is for a quorum of witnesses; 0 when
        none do."""
        size, since = self._unpublished_since
        return max(0.0, time.monotonic() - since) if size > self.published_head_count() else 0.0

    def witnesses(self) -> list[dict[str, Any]]:
        """The status of the policy's witnesses."""
        standing: list[dict[str, Any]] = json.loads(self.auditor.witnesses())
        return standing

    def _report_findings(self) -> None:
        found = {(finding["code"], finding["origin"]): finding for finding in self.findings()}
        # Of a single log or shard that cannot be read, the shard is told.
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
    """Seconds as the core takes them, in microseconds."""
    return int(value * _MICROSECONDS)
