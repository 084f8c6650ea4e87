"""What the workers told last, and when they are asked anew.

Asking is cheap and rare. A worker's answer is kept until its pod's readiness or configuration changes, or it
grows old; only one that is on its way out is asked at every reconcile.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from proofgate_operator.build.naming import CONFIG_ANNOTATION, Manifest
from proofgate_operator.plan.lasting import FirstSights, Lasting
from proofgate_operator.plan.pods import ordinal, pod_conditions
from proofgate_operator.plan.reports import WorkerReport
from proofgate_operator.workers.admin_port import AdminPort, address_of
from proofgate_operator.workers.answer_reports import AnswerReports
from proofgate_operator.workers.audit_reports import AuditReports
from proofgate_operator.workers.balancers import BalancerReports

#: A worker's answer is good for so long; an unreachable one's silence for less.
_KEPT_SECONDS = 300.0
_SILENCE_KEPT_SECONDS = 10.0
#: While it gets no credentials for a provider, which the next attempt may change.
_NOT_RENEWED_KEPT_SECONDS = 30.0
#: The kubelet needs a while to bring a new configuration to a worker, and the worker to refuse it.
_DELIVERY_SECONDS = 20.0
_DELIVERY_POLL_SECONDS = 3.0


@dataclass
class _Kept:
    """A worker's last answer, and when and in which state of its pod it was given."""

    report: WorkerReport
    asked: float
    ready: object
    mark: object
    marked: float


class WorkerReports:
    """The reports of all workers of all gateways.

    `clock` is monotonic seconds, `time_now` seconds since 1970.
    """

    def __init__(
        self,
        admin_port: AdminPort | None = None,
        clock: Callable[[], float] = time.monotonic,
        time_now: Callable[[], float] = time.time,
    ) -> None:
        self.admin_port = admin_port or AdminPort()
        self.audits = AuditReports(self.admin_port, clock)
        self.balancers = BalancerReports(self.admin_port, clock)
        self.answers = AnswerReports(self.admin_port, clock)
        self._clock = clock
        self._time = time_now
        #: By the pod's namespace, gateway and uid.
        self._kept: dict[tuple[str, str], dict[str, _Kept]] = {}
        self._first: dict[tuple[str, str], FirstSights] = {}

    def now(self) -> float:
        """Return the time of a reconcile, in seconds since 1970."""
        return self._time()

    def forget(self, namespace: str, gateway: str) -> None:
        """Drop what is kept of a gateway that is gone."""
        self._kept.pop((namespace, gateway), None)
        self._first.pop((namespace, gateway), None)
        self.audits.forget(namespace, gateway)
        self.balancers.forget(namespace, gateway)
        self.answers.forget(namespace, gateway)

    def lasting(self, namespace: str, gateway: str, pods: Iterable[Manifest]) -> Lasting:
        """Return for how long a gateway's pods have been as they are."""
        return self._first.setdefault((namespace, gateway), FirstSights()).look(pods, self._clock())

    def awaited(self, namespace: str, gateway: str) -> bool:
        """Return whether a worker may soon tell something else: it may not have said yet what it makes of a
        new configuration, or waits for credentials."""
        now = self._clock()
        kept = self._kept.get((namespace, gateway), {}).values()
        return any(now - found.marked < _DELIVERY_SECONDS or found.report.not_renewed for found in kept)

    async def reports(
        self, namespace: str, gateway: str, pods: Iterable[Manifest], ask: frozenset[int]
    ) -> dict[int, WorkerReport]:
        """Return what the workers tell, by shard; those in `ask` are asked whatever is kept of them."""
        kept = self._kept.setdefault((namespace, gateway), {})
        here = {pod["metadata"]["uid"]: pod for pod in pods if address_of(pod)}
        for uid in kept.keys() - here.keys():
            del kept[uid]
        stale = [pod for uid, pod in here.items() if ordinal(pod) in ask or self._stale(kept.get(uid), pod)]
        reports = await asyncio.gather(*(self.admin_port.report(pod) for pod in stale))
        for pod, report in zip(stale, reports, strict=True):
            self._keep(kept, pod, report)
        return {ordinal(pod): kept[uid].report for uid, pod in here.items()}

    def last(self, namespace: str, gateway: str, pods: Iterable[Manifest]) -> dict[int, WorkerReport]:
        """Return what is kept of the workers, by shard, however old."""
        kept = self._kept.get((namespace, gateway), {})
        uids = {pod["metadata"]["uid"]: ordinal(pod) for pod in pods}
        return {number: kept[uid].report for uid, number in uids.items() if uid in kept}

    def _stale(self, kept: _Kept | None, pod: Manifest) -> bool:
        if kept is None or (_readiness(pod), _mark(pod)) != (kept.ready, kept.mark):
            return True
        now = self._clock()
        age = now - kept.asked
        if now - kept.marked < _DELIVERY_SECONDS and age >= _DELIVERY_POLL_SECONDS:
            return True
        if not kept.report.reachable:
            return age >= _SILENCE_KEPT_SECONDS
        return age >= (_NOT_RENEWED_KEPT_SECONDS if kept.report.not_renewed else _KEPT_SECONDS)

    def _keep(self, kept: dict[str, _Kept], pod: Manifest, report: WorkerReport) -> None:
        uid, now, mark = pod["metadata"]["uid"], self._clock(), _mark(pod)
        before = kept.get(uid)
        # A worker that is new has read the newest configuration at its start.
        marked = float("-inf") if before is None else before.marked if before.mark == mark else now
        kept[uid] = _Kept(report, now, _readiness(pod), mark, marked)


def _readiness(pod: Manifest) -> object:
    ready = pod_conditions(pod).get("Ready", {})
    return ready.get("status"), ready.get("lastTransitionTime")


def _mark(pod: Manifest) -> object:
    return (pod["metadata"].get("annotations") or {}).get(CONFIG_ANNOTATION)
