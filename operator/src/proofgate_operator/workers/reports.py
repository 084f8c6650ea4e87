"""The latest reports of the workers, and when to ask again.

A worker's answer is cached until its pod's readiness or configuration changes, or the answer expires. Only a
leaving worker is asked in every reconcile.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from proofgate_operator.build.naming import CONFIG_ANNOTATION, Manifest
from proofgate_operator.plan.pod_durations import PodDurations, PodFirstSeenTimes
from proofgate_operator.plan.pods import ordinal, pod_conditions
from proofgate_operator.plan.reports import WorkerReport
from proofgate_operator.workers.admin_port import AdminPort, address_of
from proofgate_operator.workers.audit_reports import AuditReports
from proofgate_operator.workers.balancers import BalancerReports
from proofgate_operator.workers.request_probe_reports import RequestProbeReports

#: Seconds for which a worker's answer is cached, and for which an unreachable worker is not asked again.
_CACHE_SECONDS = 300.0
_FAILURE_CACHE_SECONDS = 10.0
#: Cache seconds while a worker gets no credentials for a provider, because its next attempt may succeed.
_NOT_RENEWED_CACHE_SECONDS = 30.0
#: Seconds that the kubelet needs to deliver a new configuration, and the worker to accept or refuse it.
_DELIVERY_SECONDS = 20.0
_DELIVERY_POLL_SECONDS = 3.0


@dataclass
class _CachedReport:
    """A worker's last answer, the time of the answer, and the state of its pod at that time."""

    report: WorkerReport
    polled_at: float
    pod_readiness: object
    config_mark: object
    config_marked_at: float


class WorkerReports:
    """The reports of all workers of all gateways.

    `clock` returns monotonic seconds, `time_now` seconds since 1970.
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
        self.request_probes = RequestProbeReports(self.admin_port, clock)
        self._clock = clock
        self._time = time_now
        #: Cached reports, keyed by the pod's namespace, gateway and uid.
        self._kept: dict[tuple[str, str], dict[str, _CachedReport]] = {}
        self._first: dict[tuple[str, str], PodFirstSeenTimes] = {}

    def now(self) -> float:
        """Return the time of a reconcile, in seconds since 1970."""
        return self._time()

    def remove_gateway(self, namespace: str, gateway: str) -> None:
        """Drop the records of a deleted gateway."""
        self._kept.pop((namespace, gateway), None)
        self._first.pop((namespace, gateway), None)
        self.audits.remove_gateway(namespace, gateway)
        self.balancers.remove_gateway(namespace, gateway)
        self.request_probes.remove_gateway(namespace, gateway)

    def pod_durations(self, namespace: str, gateway: str, pods: Iterable[Manifest]) -> PodDurations:
        """Return how long a gateway's pods have been in their current state."""
        return self._first.setdefault((namespace, gateway), PodFirstSeenTimes()).observe(pods, self._clock())

    def awaits_reload(self, namespace: str, gateway: str) -> bool:
        """Return whether a worker's report may change soon, because it may not have reported on a new
        configuration yet, or waits for credentials."""
        now = self._clock()
        kept = self._kept.get((namespace, gateway), {}).values()
        return any(
            now - found.config_marked_at < _DELIVERY_SECONDS or found.report.unrenewed_credentials
            for found in kept
        )

    async def reports(
        self, namespace: str, gateway: str, pods: Iterable[Manifest], ask: frozenset[int]
    ) -> dict[int, WorkerReport]:
        """Return the workers' reports by shard; the workers in `ask` are asked even if their answer is
        cached."""
        kept = self._kept.setdefault((namespace, gateway), {})
        here = {pod["metadata"]["uid"]: pod for pod in pods if address_of(pod)}
        for uid in kept.keys() - here.keys():
            del kept[uid]
        stale = [
            pod for uid, pod in here.items() if ordinal(pod) in ask or self._is_stale(kept.get(uid), pod)
        ]
        reports = await asyncio.gather(*(self.admin_port.fetch_worker_report(pod) for pod in stale))
        for pod, report in zip(stale, reports, strict=True):
            self._store_report(kept, pod, report)
        return {ordinal(pod): kept[uid].report for uid, pod in here.items()}

    def cached_reports(
        self, namespace: str, gateway: str, pods: Iterable[Manifest]
    ) -> dict[int, WorkerReport]:
        """Return the cached reports by shard, regardless of their age."""
        kept = self._kept.get((namespace, gateway), {})
        uids = {pod["metadata"]["uid"]: ordinal(pod) for pod in pods}
        return {number: kept[uid].report for uid, number in uids.items() if uid in kept}

    def _is_stale(self, kept: _CachedReport | None, pod: Manifest) -> bool:
        if kept is None or (_readiness(pod), _mark(pod)) != (kept.pod_readiness, kept.config_mark):
            return True
        now = self._clock()
        age = now - kept.polled_at
        if now - kept.config_marked_at < _DELIVERY_SECONDS and age >= _DELIVERY_POLL_SECONDS:
            return True
        if not kept.report.reachable:
            return age >= _FAILURE_CACHE_SECONDS
        return age >= (_NOT_RENEWED_CACHE_SECONDS if kept.report.unrenewed_credentials else _CACHE_SECONDS)

    def _store_report(self, kept: dict[str, _CachedReport], pod: Manifest, report: WorkerReport) -> None:
        uid, now, mark = pod["metadata"]["uid"], self._clock(), _mark(pod)
        before = kept.get(uid)
        # A new worker read the newest configuration at its start.
        marked = (
            float("-inf")
            if before is None
            else before.config_marked_at
            if before.config_mark == mark
            else now
        )
        kept[uid] = _CachedReport(report, now, _readiness(pod), mark, marked)


def _readiness(pod: Manifest) -> object:
    ready = pod_conditions(pod).get("Ready", {})
    return ready.get("status"), ready.get("lastTransitionTime")


def _mark(pod: Manifest) -> object:
    return (pod["metadata"].get("annotations") or {}).get(CONFIG_ANNOTATION)
