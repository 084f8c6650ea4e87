"""The latest reports of the auditors, and when to ask again.

An auditor is asked every few seconds, and most of its numbers change each time. The report that callers get
is a snapshot: it changes immediately for urgent content, and once a minute for numbers. So an unchanged
gateway is not written needlessly.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.audit_reports import AuditReport
from proofgate_operator.workers.admin_port import AdminPort

#: Seconds between two requests to one auditor.
POLL_SECONDS = 10.0
#: Seconds between two snapshots if numbers changed, and if only the time of the last poll changed.
_COUNTS_REPORT_SECONDS = 60.0
_UNCHANGED_REPORT_SECONDS = 600.0
#: The number of consecutive unanswered requests from which an auditor counts as silent.
_MAX_FAILED_POLLS = 3


@dataclass
class _CachedReport:
    uid: str
    polled_at: float
    report: AuditReport
    reported_at: float
    epoch: int = 1
    failed_polls: int = 0


@dataclass
class AuditReports:
    """The reports of all auditors, by namespace and gateway. `clock` returns monotonic seconds."""

    admin_port: AdminPort
    clock: Callable[[], float] = time.monotonic
    _cached: dict[tuple[str, str], _CachedReport] = field(default_factory=dict)
    _reported: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    async def report(self, namespace: str, gateway: str, pod: Manifest | None) -> AuditReport | None:
        """Return an auditor's report, requested again if that is due; None if it has no pod."""
        key = (namespace, gateway)
        if pod is None:
            self._cached.pop(key, None)
            return None
        uid, kept, now = pod["metadata"]["uid"], self._cached.get(key), self.clock()
        if kept is None or kept.uid != uid or now - kept.polled_at >= POLL_SECONDS:
            report = await self.admin_port.fetch_audit_report(pod)
            self._store_report(key, uid, report, now)
        return self._cached[key].report

    def known_gateways(self) -> list[tuple[str, str]]:
        """Return the namespace and gateway of each auditor that was asked before."""
        return list(self._cached)

    def change_count(self, namespace: str, gateway: str) -> int:
        """Return a number that changes whenever the snapshot changes."""
        kept = self._cached.get((namespace, gateway))
        return kept.epoch if kept else 0

    def reported_findings(self, namespace: str, gateway: str) -> set[str]:
        """Return the names of the Events that were created for its findings; the caller may modify the
        set."""
        return self._reported.setdefault((namespace, gateway), set())

    def remove_gateway(self, namespace: str, gateway: str) -> None:
        """Drop the records of a deleted gateway."""
        self._cached.pop((namespace, gateway), None)
        self._reported.pop((namespace, gateway), None)

    def _store_report(self, key: tuple[str, str], uid: str, report: AuditReport, now: float) -> None:
        before = self._cached.get(key)
        if before is None:
            self._cached[key] = _CachedReport(uid, now, report, now)
            return
        before.failed_polls = 0 if report.reachable else before.failed_polls + 1
        waits = before.uid == uid and before.report.reachable and 0 < before.failed_polls < _MAX_FAILED_POLLS
        if before.uid != uid or (not waits and self._is_due(before, report, now)):
            self._cached[key] = _CachedReport(uid, now, report, now, before.epoch + 1)
        else:
            before.polled_at = now

    @staticmethod
    def _is_due(kept: _CachedReport, report: AuditReport, now: float) -> bool:
        if report.urgent_content != kept.report.urgent_content:
            return True
        if report == kept.report:
            return False
        only_looked = replace(report, last_poll_at=kept.report.last_poll_at) == kept.report
        return now - kept.reported_at >= (
            _UNCHANGED_REPORT_SECONDS if only_looked else _COUNTS_REPORT_SECONDS
        )
