"""What the auditors told last, and when they are asked anew.

An auditor is asked every few seconds, and most of what it tells changes each time. What others are told is a
snapshot, which changes at once for what matters and once a minute for numbers: so a gateway at rest is not
written to for nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.audit_reports import AuditReport
from proofgate_operator.workers.admin_port import AdminPort

#: Between two questions to one auditor.
ASK_SECONDS = 10.0
#: Numbers that changed are told so often; that it has looked again and found all as it was, more rarely.
_NUMBERS_SECONDS = 60.0
_LOOKED_SECONDS = 600.0
#: So many questions in a row without an answer, and it counts as silent.
_SILENCES = 3


@dataclass
class _Kept:
    uid: str
    asked: float
    report: AuditReport
    told_at: float
    epoch: int = 1
    silences: int = 0


@dataclass
class AuditReports:
    """The reports of all auditors, by namespace and gateway. `clock` is monotonic seconds."""

    admin_port: AdminPort
    clock: Callable[[], float] = time.monotonic
    _kept: dict[tuple[str, str], _Kept] = field(default_factory=dict)
    _told: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    async def report(self, namespace: str, gateway: str, pod: Manifest | None) -> AuditReport | None:
        """Return what an auditor told, and ask it if that is due; None for one without a pod."""
        key = (namespace, gateway)
        if pod is None:
            self._kept.pop(key, None)
            return None
        uid, kept, now = pod["metadata"]["uid"], self._kept.get(key), self.clock()
        if kept is None or kept.uid != uid or now - kept.asked >= ASK_SECONDS:
            report = await self.admin_port.audit(pod)
            self._keep(key, uid, report, now)
        return self._kept[key].report

    def known(self) -> list[tuple[str, str]]:
        """Return the gateways, with their namespaces, of the auditors that were asked before."""
        return list(self._kept)

    def epoch(self, namespace: str, gateway: str) -> int:
        """Return a number that is another one whenever another thing is told."""
        kept = self._kept.get((namespace, gateway))
        return kept.epoch if kept else 0

    def told(self, namespace: str, gateway: str) -> set[str]:
        """Return the names of the Events that were made of its findings; the caller's to change."""
        return self._told.setdefault((namespace, gateway), set())

    def forget(self, namespace: str, gateway: str) -> None:
        """Drop what is kept of a gateway that is gone."""
        self._kept.pop((namespace, gateway), None)
        self._told.pop((namespace, gateway), None)

    def _keep(self, key: tuple[str, str], uid: str, report: AuditReport, now: float) -> None:
        before = self._kept.get(key)
        if before is None:
            self._kept[key] = _Kept(uid, now, report, now)
            return
        before.silences = 0 if report.reachable else before.silences + 1
        waits = before.uid == uid and before.report.reachable and 0 < before.silences < _SILENCES
        if before.uid != uid or (not waits and self._is_due(before, report, now)):
            self._kept[key] = _Kept(uid, now, report, now, before.epoch + 1)
        else:
            before.asked = now

    @staticmethod
    def _is_due(kept: _Kept, report: AuditReport, now: float) -> bool:
        if report.urgent != kept.report.urgent:
            return True
        if report == kept.report:
            return False
        only_looked = replace(report, last_poll=kept.report.last_poll) == kept.report
        return now - kept.told_at >= (_LOOKED_SECONDS if only_looked else _NUMBERS_SECONDS)
