"""The shards of a gateway: each worker's pod, its report, and how long it has been retiring."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.balancers import BalancerView, ready_balancers, served_seconds
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.pod_durations import PodDurations
from proofgate_operator.plan.pods import (
    STARTING_REASONS,
    is_ready,
    ordinal,
    pod_conditions,
    unfinished_containers,
)
from proofgate_operator.plan.reports import WorkerReport
from proofgate_operator.plan.rfc3339 import seconds_of

#: Seconds after which a pod that is not ready counts as stuck: more than the startup probe allows.
STUCK_SECONDS = 600
_REVISION_LABEL = "controller-revision-hash"


class WorkerPhase(StrEnum):
    """The phase of a shard's worker in its life cycle."""

    PENDING = "Pending"
    STARTING = "Starting"
    READY = "Ready"
    RETIRING = "Retiring"
    LEAVING = "Leaving"
    FAILED = "Failed"


@dataclass(frozen=True)
class Shard:
    """One worker's pod, and the known state of the worker."""

    pod: Manifest
    report: WorkerReport | None = None
    #: The time in seconds since 1970 since which it retires; None if it does not.
    retiring_since: float | None = None
    #: Whether its pod was created from another template than the current one.
    outdated: bool = False
    #: Its state in all HAProxy instances.
    balancer_view: BalancerView = field(default_factory=BalancerView)
    #: How long it has been in its current state.
    pod_durations: PodDurations = field(default_factory=PodDurations)

    @property
    def ordinal(self) -> int:
        """The shard's number."""
        return ordinal(self.pod)

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])

    @property
    def terminating(self) -> bool:
        """Whether the pod is being deleted, by any client."""
        return bool(self.pod["metadata"].get("deletionTimestamp"))

    @property
    def ready(self) -> bool:
        """Whether the worker serves, and every HAProxy has sent it connections since its pod was created."""
        return is_ready(self.pod)

    def ready_for(self, seconds: float) -> bool:
        """Whether it has been ready for `seconds`, as far as this operator process observed."""
        return self.ready and self.pod_durations.condition_true_for(self.pod, "Ready") >= seconds

    @property
    def served_seconds(self) -> float:
        """Seconds for which it has passed the kubelet's probe; 0 while it does not."""
        return served_seconds(self.pod, self.pod_durations)

    @property
    def retiring(self) -> bool:
        """Whether it retires and the retirement may still be cancelled."""
        return self.retiring_since is not None or bool(self.report and self.report.retiring)

    @property
    def serving(self) -> bool:
        """Whether clients would be affected if it stopped now."""
        if not (self.pod.get("status") or {}).get("podIP"):
            return False
        told = self.report is not None and bool(self.report.serving or self.report.connections)
        return self.ready or self.retiring or told

    @property
    def failed(self) -> bool:
        """Whether its pod's status shows that waiting alone will not make it ready."""
        status = self.pod.get("status") or {}
        if self.ready or self.terminating:
            return False
        for container in unfinished_containers(self.pod):
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason", "ContainerCreating") not in STARTING_REASONS:
                return True
            if container.get("restartCount", 0) > 0:
                return True
        unscheduled = pod_conditions(self.pod).get("PodScheduled", {}).get("status") == "False"
        return status.get("phase") == "Failed" or unscheduled

    @property
    def stuck(self) -> bool:
        """Whether waiting for it is pointless."""
        return self.failed or (not self.ready and self.pod_durations.observed_for(self.pod) > STUCK_SECONDS)

    def phase(self, asked: int) -> WorkerPhase:
        """Return its phase; `asked` is the wanted number of workers of its StatefulSet."""
        if self.terminating or self.ordinal >= asked:
            return WorkerPhase.LEAVING
        if self.retiring:
            return WorkerPhase.RETIRING
        if self.ready:
            return WorkerPhase.READY
        if self.failed:
            return WorkerPhase.FAILED
        placed = (self.pod.get("spec") or {}).get("nodeName")
        return WorkerPhase.STARTING if placed else WorkerPhase.PENDING


def _retiring_since(pod: Manifest, before: Mapping[str, Any] | None, now: float) -> float | None:
    """Return the time from which a worker retires, from the status; a time before the pod's creation belongs
    to another pod."""
    since = seconds_of((before or {}).get("retiringSince"))
    made = seconds_of(pod["metadata"].get("creationTimestamp"))
    if since is None or (made is not None and since < made):
        return None
    # A clock that was set back must not cause a wait.
    return min(since, now)


def update_revision(statefulset: Manifest | None) -> str | None:
    """Return the revision of new pods; None while the controller has not processed the newest template."""
    if statefulset is None:
        return None
    status = statefulset.get("status") or {}
    if status.get("observedGeneration", 0) < statefulset["metadata"].get("generation", 0):
        return None
    return status.get("updateRevision")


def read_shards(seen: ObservedState, statefulset: Manifest | None) -> tuple[Shard, ...]:
    """Return the shards that have a pod, the lowest number first."""
    before = {item.get("ordinal"): item for item in seen.previous_shards}
    revision = update_revision(statefulset)
    balancers = ready_balancers(seen.haproxy_pods, seen.balancer_reports)

    def shard(pod: Manifest) -> Shard:
        number = ordinal(pod)
        made_from = (pod["metadata"].get("labels") or {}).get(_REVISION_LABEL)
        return Shard(
            pod,
            seen.worker_reports.get(number),
            _retiring_since(pod, before.get(number), seen.now),
            bool(revision and made_from and made_from != revision),
            balancers.view_of(pod, served_seconds(pod, seen.pod_durations)),
            seen.pod_durations,
        )

    return tuple(sorted(map(shard, seen.worker_pods), key=lambda found: found.ordinal))


def should_query_balancers(seen: ObservedState, shards: Iterable[Shard], asked: int, desired: int) -> bool:
    """Return whether HAProxy's connections matter now; they do not while no worker moves."""
    progress = {condition["type"]: condition.get("reason") for condition in seen.previous_conditions}
    found = list(shards)
    settled = progress.get(ConditionType.PROGRESSING) == "Settled" and asked == desired == len(found)
    return not settled or any(not shard.ready or shard.retiring or shard.outdated for shard in found)


def shards_to_query(shards: Iterable[Shard]) -> frozenset[int]:
    """Return the shards whose workers have to be asked again, even if their last answer is recent."""
    return frozenset(
        shard.ordinal for shard in shards if shard.retiring or (shard.report and shard.report.refusal_reason)
    )
