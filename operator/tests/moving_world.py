"""A cluster of workers that start, retire, end and break, for tests of scaling and rollouts.

It simulates the StatefulSet controller, the kubelet and the workers, second by second. Each action of the
operator is checked against what it must never do.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

from proofgate_operator.api.conditions import Condition, ConditionType
from proofgate_operator.build.naming import LOAD_BALANCED_CONDITION
from proofgate_operator.plan.balancers import BalancerReport
from proofgate_operator.plan.decide import ReconcilePlan, decide
from proofgate_operator.plan.observed_state import ObservedState, Ref
from proofgate_operator.plan.pod_durations import PodFirstSeenTimes
from proofgate_operator.plan.reports import UNREACHABLE, WorkerReport
from proofgate_operator.plan.rfc3339 import time_of
from tests.gateways import DEFAULTS, SPEC
from tests.world import World

Manifest = dict[str, Any]
BEGIN = 1_900_000_000.0
START_SECONDS = 2
DRAIN_SECONDS = 10
SET = Ref("StatefulSet", "demo-worker")


def _condition(kind: str, since: float | None) -> Manifest:
    found = {"type": kind, "status": "False" if since is None else "True"}
    return found if since is None else {**found, "lastTransitionTime": time_of(since)}


@dataclass
class Pod:
    """A worker's pod and the worker in it."""

    ordinal: int
    uid: int
    revision: str
    created: float
    serves_since: float | None = None
    #: The time at which the operator confirmed that every HAProxy sends it connections.
    found_since: float | None = None
    ending: bool = False
    retiring: bool = False
    connections: int = 0
    broken: bool = False
    unreachable: bool = False
    was_retired: bool = False
    annotations: Manifest = field(default_factory=dict)

    def ready(self, now: float) -> bool:
        """Return whether it serves and the operator has confirmed that HAProxy has found it."""
        serves = self.serves_since is not None and not self.retiring
        return serves and self.found_since is not None and self.found_since <= now

    def manifest(self, now: float) -> Manifest:
        metadata: Manifest = {
            "name": f"demo-worker-{self.ordinal}",
            "uid": f"pod-{self.uid}",
            "creationTimestamp": time_of(self.created),
            "labels": {"controller-revision-hash": self.revision},
            "annotations": self.annotations,
        }
        if self.ending:
            metadata["deletionTimestamp"] = time_of(self.created)
        serving = self.serves_since if not self.retiring else None
        both = max(self.serves_since, self.found_since) if self.serves_since and self.found_since else None
        status: Manifest = {
            "podIP": self.address,
            "conditions": [
                _condition("Ready", both if self.ready(now) else None),
                _condition("ContainersReady", serving),
                _condition(LOAD_BALANCED_CONDITION, self.found_since),
            ],
        }
        if self.broken:
            status["containerStatuses"] = [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
        gates = [{"conditionType": LOAD_BALANCED_CONDITION}]
        return {"metadata": metadata, "spec": {"nodeName": "node", "readinessGates": gates}, "status": status}

    @property
    def address(self) -> str:
        return f"10.0.0.{self.uid % 250}"

    def report(self) -> WorkerReport:
        if self.unreachable or self.broken:
            return UNREACHABLE
        return WorkerReport(
            serving=self.serves_since is not None and not self.retiring,
            retiring=self.retiring,
            connections=self.connections,
            in_flight=self.connections,
        )


@dataclass
class MovingWorld:
    """A settled gateway whose workers can be moved."""

    replicas: int = 3
    spec: Manifest = field(default_factory=dict)
    volumes: str = "Shared"
    now: float = BEGIN
    pods: dict[int, Pod] = field(default_factory=dict)
    #: Deliberate deletions of pods and scale-downs, in order.
    removed: list[str] = field(default_factory=list)
    #: Revisions whose new pods never become ready.
    bad_images: set[str] = field(default_factory=set)
    conditions: tuple[Manifest, ...] = ()
    shards: tuple[Manifest, ...] = ()
    bound: bool = True
    first_sights: PodFirstSeenTimes = field(default_factory=PodFirstSeenTimes)

    def __post_init__(self) -> None:
        ledger = {"volume": {**SPEC["ledger"]["volume"], "mode": self.volumes}}
        timeouts = {"drainSeconds": DRAIN_SECONDS}
        self.world = World(replicas=self.replicas, ledger=ledger, timeouts=timeouts, **self.spec)
        self.next_uid = 1
        self.settle()

    @property
    def claims(self) -> dict[str, Manifest]:
        """The existing claims, by name."""
        return {
            ref.name: claim
            for ref, claim in self.world.children.items()
            if ref.kind == "PersistentVolumeClaim" and claim is not None
        }

    @property
    def asked(self) -> int:
        live = self.world.children.get(SET)
        return int(live["spec"]["replicas"]) if live else 0

    @property
    def image(self) -> str:
        live = self.world.child("StatefulSet", "demo-worker")
        return str(live["spec"]["template"]["spec"]["containers"][0]["image"])

    def scale(self, replicas: int) -> None:
        self.world.manifest["spec"]["replicas"] = replicas

    def use_image(self, image: str) -> None:
        self.world.manifest["spec"].setdefault("worker", {})["image"] = image

    def force(self, replicas: int) -> None:
        annotations = {"proofgate.dev/force-scale-down": str(replicas)}
        self.world.manifest["metadata"]["annotations"] = annotations

    def observed(self) -> ObservedState:
        return ObservedState(
            children=self.world.children,
            secrets=self.world.secrets,
            worker_pods=tuple(pod.manifest(self.now) for pod in self.pods.values()),
            haproxy_pods=tuple(self.world.balancers),
            previous_conditions=self.conditions,
            previous_shards=self.shards,
            worker_reports={number: pod.report() for number, pod in self.pods.items() if not pod.ending},
            balancer_reports=self.asked_balancers(),
            now=self.now,
            pod_durations=self.first_sights.observe(
                [pod.manifest(self.now) for pod in self.pods.values()], self.now
            ),
        )

    def asked_balancers(self) -> dict[str, BalancerReport]:
        """The reports of Ready HAProxies; this world has none."""
        return {}

    def plan(self) -> ReconcilePlan:
        return self.plan_of(self.observed())

    def plan_of(self, seen: ObservedState) -> ReconcilePlan:
        return decide(self.world.gateway, seen, DEFAULTS)

    def condition(self, kind: ConditionType) -> Condition:
        return self.plan().status.condition(kind)

    def reconcile(self, writes: int | None = None) -> ReconcilePlan:
        """Reconcile once; with `writes`, the operator is killed after this many steps."""
        plan = self.plan()
        self.carry_out(plan, writes)
        return plan

    def carry_out(self, plan: ReconcilePlan, writes: int | None = None) -> None:
        """Execute a plan, or only its first `writes` steps."""
        steps = [
            lambda: [self._stay(pod) for pod in plan.retirements_to_cancel],
            lambda: self._apply(plan),
            lambda: [self._retire(pod) for pod in plan.pods_to_retire],
            lambda: [self._delete(pod) for pod in plan.pods_to_replace],
            lambda: [self._find(pod) for pod in plan.discovered_pods],
            lambda: self._report(plan),
        ]
        for step in steps[:writes]:
            step()

    def _apply(self, plan: ReconcilePlan) -> None:
        before = self.asked
        generation = (self.world.children.get(SET) or {"metadata": {}})["metadata"].get("generation", 0)
        live = copy.deepcopy(self.world.children.get(SET))
        self.world.carry_out(plan)
        for pod in self.pods.values():
            pod.annotations = {
                **pod.annotations,
                **plan.pod_annotations.get(f"demo-worker-{pod.ordinal}", {}),
            }
        written = self.world.children.get(SET)
        if written is not None and written is not live:
            changed = live is None or live["spec"] != written["spec"]
            written["metadata"]["generation"] = generation + 1 if changed else generation
            written.setdefault("status", (live or {}).get("status", {}))
        if 0 < self.asked < before:
            assert self.asked == before - 1, "more than one worker is removed at the same time"
            self._leaves_on_purpose(self.pods.get(before - 1))

    def _leaves_on_purpose(self, pod: Pod | None) -> None:
        others = [other for other in self.pods.values() if other is not pod]
        assert not any(other.ending for other in others if self._on_purpose(other)), (
            "two workers leave at the same time"
        )
        assert not any(other.retiring for other in others), "a worker leaves while another retires"
        if pod is None:
            return
        self.removed.append(f"{pod.ordinal}:{pod.revision}")
        # A worker that somebody else stops ends without the operator.
        served = pod.serves_since is not None and not pod.broken and not pod.ending
        assert pod.was_retired or pod.unreachable or not served, "a worker leaves without retiring first"

    def _on_purpose(self, pod: Pod) -> bool:
        return f"{pod.ordinal}:{pod.revision}" in self.removed

    def _delete(self, manifest: Manifest) -> None:
        pod = self.pods[int(manifest["metadata"]["name"].rsplit("-", 1)[1])]
        if manifest["metadata"]["uid"] != f"pod-{pod.uid}":
            return
        # Pods that a scale-down removes are no successors; a second worker stands in for a single one.
        staying = max(2, self.world.gateway.spec.replicas)
        for other in self.pods.values():
            if other is not pod and other.revision == self.image and other.ordinal < staying:
                assert other.ready(self.now), "a pod is deleted before the previous one is replaced"
        self._leaves_on_purpose(pod)
        pod.ending = True

    def _find(self, manifest: Manifest) -> None:
        pod = self.pods[int(manifest["metadata"]["name"].rsplit("-", 1)[1])]
        if manifest["metadata"]["uid"] == f"pod-{pod.uid}":
            pod.found_since = self.now

    def _retire(self, manifest: Manifest) -> None:
        pod = self.pods[int(manifest["metadata"]["name"].rsplit("-", 1)[1])]
        others = [other for other in self.pods.values() if other is not pod]
        assert not any(other.retiring and not other.unreachable for other in others), (
            "two workers retire at the same time"
        )
        if not pod.unreachable and not pod.broken:
            pod.retiring = pod.was_retired = True

    def _stay(self, manifest: Manifest) -> None:
        pod = self.pods[int(manifest["metadata"]["name"].rsplit("-", 1)[1])]
        if not pod.unreachable and pod.retiring:
            pod.retiring = False
            pod.serves_since = self.now

    def _report(self, plan: ReconcilePlan) -> None:
        self.shards = plan.status.shards
        self.conditions = tuple(
            {"type": found.type.value, "status": found.status.value, "reason": found.reason}
            for found in plan.status.conditions
        )

    def tick(self, seconds: int = 1) -> None:
        """Advance the cluster without the operator."""
        for _ in range(seconds):
            self.now += 1
            self._tick()

    def _tick(self) -> None:
        for claim in self.claims.values():
            claim["status"] = {"phase": "Bound" if self.bound else "Lost"}
        live = self.world.children.get(SET)
        if live is None:
            return
        for number, pod in list(self.pods.items()):
            if pod.ending:
                del self.pods[number]
            elif number >= self.asked:
                pod.ending = True
            elif pod.serves_since is None and not pod.broken and self.now - pod.created >= START_SECONDS:
                pod.serves_since = self.now
            if pod.retiring:
                pod.connections = max(0, pod.connections - 1)
        for number in range(self.asked):
            if number not in self.pods:
                mounted = "demo-wal" if self.volumes == "Shared" else f"ledger-demo-worker-{number}"
                assert mounted in self.claims, "a worker starts before its claim exists"
                broken = self.image in self.bad_images
                self.pods[number] = Pod(number, self.next_uid, self.image, self.now, broken=broken)
                self.next_uid += 1
        ready = [pod for pod in self.pods.values() if pod.ready(self.now) and not pod.ending]
        live["status"] = {
            "observedGeneration": live["metadata"].get("generation", 0),
            "updateRevision": self.image,
            "replicas": len(self.pods),
            "readyReplicas": len(ready),
            "updatedReplicas": sum(pod.revision == self.image for pod in self.pods.values()),
        }
        balancer = self.world.child("Deployment", "demo-haproxy")
        count = balancer["spec"]["replicas"]
        balancer["status"] = {"replicas": count, "readyReplicas": count, "updatedReplicas": count}

    def run(self, seconds: int) -> None:
        """Advance the cluster and the operator by this many seconds."""
        for _ in range(seconds):
            self.reconcile()
            self.tick()

    def settle(self, limit: int = 600) -> None:
        """Advance until the gateway matches its spec."""
        plan = self.plan()
        for _ in range(limit):
            self.carry_out(plan)
            self.tick()
            plan = self.plan()
            if self.settled(plan):
                # The status still describes the state before the last step.
                self.carry_out(plan)
                return
        raise AssertionError(f"never settles: {self.conditions}")

    def settled(self, plan: ReconcilePlan) -> bool:
        wanted = self.world.manifest["spec"]["replicas"]
        pods = list(self.pods.values())
        quiet = not (plan.has_writes or plan.pods_to_retire or plan.retirements_to_cancel or plan.time_driven)
        return (
            quiet
            and sorted(self.pods) == list(range(wanted))
            and all(pod.revision == self.image and pod.ready(self.now) for pod in pods)
        )


def with_connections(world: MovingWorld, count: int) -> MovingWorld:
    """Give every worker connections; a retiring worker loses one per second."""
    for pod in world.pods.values():
        pod.connections = count
    return world


def happen(world: MovingWorld, what: str, value: int | str | None) -> None:
    """Apply an event to a world; `value` is its argument, for events of a pod the pod's number."""
    pod = world.pods.get(value) if isinstance(value, int) else None
    match what, value:
        case "scale", int():
            world.scale(value)
        case "image", str():
            world.use_image(value)
        case "killed after", int():
            world.reconcile(value)
        case "wait", int():
            world.tick(value)
        case "go on", int():
            world.run(value)
        case "reconcile", _:
            world.reconcile()
        case "mend", _:
            for found in world.pods.values():
                found.broken = found.unreachable = False
    if pod is None or pod.ending:
        return
    if what == "break":
        pod.broken, pod.serves_since, pod.retiring, pod.connections = True, None, False, 0
    elif what == "evict":
        pod.ending = True
    elif what == "lose sight":
        pod.unreachable = True
    elif what == "connect":
        pod.connections += 5
