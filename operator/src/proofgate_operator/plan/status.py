"""The status: what was seen, as conditions with reasons that a reader can act on."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.api.types import Gateway
from proofgate_operator.build import statefulset
from proofgate_operator.build.naming import Defaults, Manifest, names, selector_labels
from proofgate_operator.build.services import endpoint
from proofgate_operator.plan.configuration import Configuration
from proofgate_operator.plan.observed import Observed, Ref
from proofgate_operator.plan.scaling import ordinal

#: What Ready is made of, in the order in which a reader would look for the cause.
_READY_NEEDS = (
    ConditionType.CONFIG_VALID,
    ConditionType.STORAGE_BOUND,
    ConditionType.WORKERS_AVAILABLE,
    ConditionType.LOAD_BALANCER_AVAILABLE,
)


@dataclass(frozen=True)
class Situation:
    """Everything the status is made of."""

    gateway: Gateway
    seen: Observed
    configuration: Configuration
    conflicts: tuple[Ref, ...] = ()
    leaving: tuple[Ref, ...] = ()
    writes: bool = False


@dataclass(frozen=True)
class Status:
    """A gateway's status, without the times."""

    replicas: int
    ready_replicas: int
    selector: str
    endpoint: str
    verifying_key: str | None
    conditions: tuple[Condition, ...] = field(default=())

    def condition(self, kind: ConditionType) -> Condition:
        """Return one condition."""
        return next(condition for condition in self.conditions if condition.type is kind)


def _condition(kind: ConditionType, holds: bool | None, reason: str, message: str) -> Condition:
    status = {
        True: ConditionStatus.TRUE,
        False: ConditionStatus.FALSE,
        None: ConditionStatus.UNKNOWN,
    }[holds]
    return Condition(kind, status, reason, message)


def _count(live: Manifest | None, field_name: str) -> int:
    return int(((live or {}).get("status") or {}).get(field_name) or 0)


def _sentences(parts: Iterable[str], limit: int = 5) -> str:
    """Join sentences, and say how many were left out."""
    found = list(parts)
    text = "; ".join(found[:limit])
    return text if len(found) <= limit else f"{text}; and {len(found) - limit} more"


def _config_valid(situation: Situation) -> Condition:
    kind = ConditionType.CONFIG_VALID
    if situation.conflicts:
        taken = _sentences(str(ref) for ref in situation.conflicts)
        return _condition(
            kind,
            False,
            "NameTaken",
            f"{taken}: exists and does not belong to this gateway; rename the gateway or delete the object",
        )
    problems = situation.configuration.problems
    if problems:
        running = situation.seen.child("StatefulSet", names(situation.gateway).worker) is not None
        kept = " (the workers keep the last valid configuration)" if running else ""
        return _condition(
            kind, False, problems[0].reason, _sentences(problem.message for problem in problems) + kept
        )
    valid = "the spec and every Secret it names are valid"
    return _condition(kind, True, "Valid", _sentences((valid, *situation.configuration.notes)))


def unreadable(faults: Iterable[str]) -> tuple[Condition, ...]:
    """Return what is to be said of a spec that this operator cannot read: another version's CRD let it in."""
    message = f"{_sentences(faults)} (nothing is changed)"
    return tuple(
        _condition(kind, False, "SpecInvalid", message)
        for kind in (ConditionType.READY, ConditionType.CONFIG_VALID)
    )


def _storage_bound(situation: Situation) -> Condition:
    kind = ConditionType.STORAGE_BOUND
    volume = situation.gateway.spec.ledger.volume
    name = volume.existing_claim or names(situation.gateway).claim
    live = situation.seen.child("PersistentVolumeClaim", name)
    if live is None:
        reason = "ClaimMissing" if volume.existing_claim else "ClaimNotMade"
        return _condition(kind, False, reason, f"PersistentVolumeClaim {name} does not exist")
    if live["metadata"].get("deletionTimestamp"):
        return _condition(
            kind, False, "ClaimLeaving", f"PersistentVolumeClaim {name} is being deleted while it is in use"
        )
    phase = (live.get("status") or {}).get("phase", "Pending")
    if phase != "Bound":
        return _condition(kind, False, f"Claim{phase}", f"PersistentVolumeClaim {name} is {phase}, not Bound")
    return _condition(kind, True, "Bound", f"PersistentVolumeClaim {name} is bound")


def pod_trouble(pod: Manifest) -> str | None:
    """Return why a pod is not ready, as far as its status says; None if it is."""
    status = pod.get("status") or {}
    conditions = {item["type"]: item for item in status.get("conditions") or []}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    name = pod["metadata"]["name"]
    if status.get("phase") == "Failed":
        # The kubelet refuses a pod this way, for example with SMTAlignmentError for half a physical core.
        return f"{name} failed: {status.get('reason', 'no reason')}: {status.get('message', '')}".rstrip(": ")
    for container in status.get("containerStatuses") or []:
        waiting: dict[str, Any] | None = (container.get("state") or {}).get("waiting")
        if waiting:
            return f"{name} waits: {waiting.get('reason', 'no reason')}"
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        reason = f"{scheduled.get('reason', '')}: {scheduled.get('message', '')}"
        return f"{name} is not scheduled: {reason}".rstrip(": ")
    return f"{name} is not ready"


def _workers_available(situation: Situation, live: Manifest | None) -> Condition:
    kind = ConditionType.WORKERS_AVAILABLE
    desired = situation.gateway.spec.replicas
    if live is None:
        return _condition(kind, False, "WorkersNotMade", "the workers' StatefulSet does not exist")
    ready = _count(live, "readyReplicas")
    summary = f"{min(ready, desired)} of {desired} workers ready"
    if ready >= desired:
        return _condition(kind, True, "AllReady", summary)
    pods = sorted(situation.seen.worker_pods, key=ordinal)
    trouble = _sentences(filter(None, (pod_trouble(pod) for pod in pods)), limit=3)
    return _condition(kind, False, "WorkersMissing", f"{summary}: {trouble}" if trouble else summary)


def _balancer_available(situation: Situation, live: Manifest | None) -> Condition:
    kind = ConditionType.LOAD_BALANCER_AVAILABLE
    desired = situation.gateway.spec.load_balancer.replicas
    if live is None:
        return _condition(kind, False, "LoadBalancerNotMade", "HAProxy's Deployment does not exist")
    ready = _count(live, "readyReplicas")
    summary = f"{min(ready, desired)} of {desired} HAProxy pods ready"
    if ready == 0:
        return _condition(kind, False, "LoadBalancerMissing", summary)
    return _condition(kind, True, "AllReady" if ready >= desired else "SomeReady", summary)


def _rolling(live: Manifest, desired: int) -> bool:
    """Return whether a controller still has work to do on a StatefulSet or Deployment."""
    status = live.get("status") or {}
    return (
        status.get("observedGeneration", 0) < live["metadata"].get("generation", 0)
        or _count(live, "replicas") != desired
        or _count(live, "updatedReplicas") < desired
        or _count(live, "readyReplicas") < desired
    )


def _progressing(situation: Situation, workers: Manifest | None, balancer: Manifest | None) -> Condition:
    kind = ConditionType.PROGRESSING
    spec = situation.gateway.spec
    if spec.paused:
        return _condition(kind, False, "Paused", "spec.paused is true: nothing is changed")
    if situation.conflicts:
        return _condition(kind, False, "NameTaken", "nothing is changed while ConfigValid is False")
    if situation.configuration.problems:
        return _condition(kind, False, "ConfigInvalid", "workers and HAProxy wait for a valid configuration")
    if situation.leaving:
        left = _sentences(str(ref) for ref in situation.leaving)
        return _condition(kind, True, "WaitingForDeletion", f"{left}: is made anew when it is gone")
    if workers is None or balancer is None or situation.writes:
        return _condition(kind, True, "Applying", "the gateway's objects are being written")
    asked = int(workers["spec"]["replicas"])
    if asked > spec.replicas or len(situation.seen.worker_pods) > spec.replicas:
        return _condition(kind, True, "ScalingDown", f"from {asked} workers to {spec.replicas}")
    if _count(workers, "replicas") < spec.replicas:
        message = f"from {_count(workers, 'replicas')} workers to {spec.replicas}"
        return _condition(kind, True, "ScalingUp", message)
    if _rolling(workers, spec.replicas):
        return _condition(kind, True, "WorkersRolling", "workers start or are replaced one by one")
    if _rolling(balancer, spec.load_balancer.replicas):
        return _condition(kind, True, "LoadBalancerRolling", "HAProxy pods start or are replaced")
    return _condition(kind, False, "Settled", "the gateway is as its spec says")


def _scaling_safe(situation: Situation, workers: Manifest | None) -> Condition:
    kind = ConditionType.SCALING_SAFE
    desired = situation.gateway.spec.replicas
    asked = int(workers["spec"]["replicas"]) if workers else desired
    leaving = [pod for pod in situation.seen.worker_pods if ordinal(pod) >= asked]
    if asked > desired or leaving:
        names_ = _sentences(pod["metadata"]["name"] for pod in sorted(leaving, key=ordinal))
        message = f"{names_} drains and seals its log" if leaving else "the next worker is about to leave"
        return _condition(kind, True, "OneAtATime", message)
    return _condition(kind, True, "NothingLeaves", "no worker is leaving; each seals its log before it goes")


def _ready(conditions: Iterable[Condition]) -> Condition:
    """Return the summary: the first need that is not met is its reason."""
    by_type = {condition.type: condition for condition in conditions}
    for kind in _READY_NEEDS:
        need = by_type[kind]
        if not need.holds:
            return Condition(ConditionType.READY, need.status, need.reason, need.message)
    return _condition(ConditionType.READY, True, "Ready", "the gateway serves")


def report(situation: Situation, defaults: Defaults) -> Status:
    """Return the status of a gateway."""
    gateway, seen = situation.gateway, situation.seen
    own = names(gateway)
    workers = seen.child("StatefulSet", own.worker)
    balancer = seen.child("Deployment", own.haproxy)
    conditions = [
        _config_valid(situation),
        _storage_bound(situation),
        _workers_available(situation, workers),
        _balancer_available(situation, balancer),
        _progressing(situation, workers, balancer),
        _scaling_safe(situation, workers),
        _condition(
            ConditionType.CPU_PINNED, None, "NotMeasured", "the workers' CPU sets have not been measured"
        ),
    ]
    labels = selector_labels(gateway, statefulset.COMPONENT)
    return Status(
        replicas=_count(workers, "replicas"),
        ready_replicas=_count(workers, "readyReplicas"),
        selector=",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        endpoint=endpoint(gateway, defaults.cluster_domain),
        verifying_key=situation.configuration.verifying_key,
        conditions=(_ready(conditions), *conditions),
    )
