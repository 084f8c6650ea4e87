"""What every HAProxy says of the workers behind it, and what follows for one of them.

Only HAProxy pods that are Ready, and have an address, count: clients reach no other one. A pod that counts
and does not answer the operator is waited for, but not for ever.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proofgate_operator.build import haproxy
from proofgate_operator.build.haproxy_config import server_name
from proofgate_operator.build.naming import LOAD_BALANCED_CONDITION, Manifest
from proofgate_operator.plan.pod_durations import PodDurations
from proofgate_operator.plan.pods import is_ready, ordinal, pod_conditions

#: A worker that serves is found by every HAProxy within a few seconds. From this many on, a roll that waits
#: for that counts as stalled. It goes no further, and goes on by itself once the worker is found.
DISCOVERY_DEADLINE_SECONDS = 60
#: A HAProxy that is Ready and has not answered the operator for so long is not waited for.
UNRESPONSIVE_SECONDS = 60
UNRESPONSIVE_MESSAGE = (
    "no HAProxy pod that is Ready answers the operator on port"
    f" {haproxy.AGENT_PORT}, so it is unknown which workers get connections"
)
_UP = "up"
_STATES = (_UP, "down", "maintenance")


@dataclass(frozen=True)
class ServerState:
    """A worker as one HAProxy has it: its address, its state, and how long it has had that."""

    address: str | None
    state: str
    seconds: int


@dataclass(frozen=True)
class BalancerReport:
    """The answer of the agent beside one HAProxy; None for one that gave none, for so many seconds.

    `owners` is the SHA-256 of the map of owners that HAProxy holds; None where that is not told.
    """

    workers: Mapping[str, ServerState] | None = None
    unresponsive_seconds: float = 0.0
    owner_map_digest: str | None = None

    @property
    def has_timed_out(self) -> bool:
        """Whether it is waited for no longer."""
        return self.workers is None and self.unresponsive_seconds >= UNRESPONSIVE_SECONDS


@dataclass(frozen=True)
class BalancerView:
    """What the HAProxies say of one worker.

    `missing` is why not every one of them sends it connections, None if all do; `late` that this has lasted
    for too long; `up_at` are those that do. `blind`: there are some, and none answers.
    """

    missing_reason: str | None = None
    is_overdue: bool = False
    connected_balancers: tuple[str, ...] = ()
    is_unresponsive: bool = False


@dataclass(frozen=True)
class Balancers:
    """The HAProxy pods that are Ready, and the reports that there are of them, both by the pod's name."""

    ready: tuple[str, ...] = ()
    reports: Mapping[str, BalancerReport] = field(default_factory=dict)

    @property
    def is_unresponsive(self) -> bool:
        """Whether there are some and none has answered for long."""
        return bool(self.ready) and all(self._report(name).has_timed_out for name in self.ready)

    def view_of(self, pod: Manifest, served: float) -> BalancerView:
        """Return what they say of one worker, which has passed the kubelet's probe for `served` seconds."""
        missing: list[str] = []
        late, up_at = False, []
        for name in self.ready:
            report = self._report(name)
            if report.has_timed_out:
                continue
            line = (report.workers or {}).get(server_name(ordinal(pod)))
            if line is not None and line.state == _UP:
                up_at.append(name)
            trouble = _server_problem(name, report, line, pod)
            if trouble is None:
                continue
            missing.append(trouble)
            # One that does not answer is not waited for after its own deadline.
            lasts = line is None or line.seconds >= DISCOVERY_DEADLINE_SECONDS
            late |= report.workers is not None and lasts and served >= DISCOVERY_DEADLINE_SECONDS
        told = "; ".join(missing[:2]) or None
        return BalancerView(told, late, tuple(up_at), self.is_unresponsive)

    def _report(self, name: str) -> BalancerReport:
        return self.reports.get(name, BalancerReport())


def is_reachable(pod: Manifest) -> bool:
    """Return whether clients may reach a HAProxy."""
    return is_ready(pod) and bool((pod.get("status") or {}).get("podIP"))


def ready_balancers(pods: Iterable[Manifest], reports: Mapping[str, BalancerReport]) -> Balancers:
    """Return the HAProxies that count, of all of a gateway's."""
    return Balancers(tuple(sorted(pod["metadata"]["name"] for pod in pods if is_reachable(pod))), reports)


def served_seconds(pod: Manifest, lasting: PodDurations) -> float:
    """Return for how long a worker has passed the kubelet's probe; 0 while it does not."""
    told = "ContainersReady" if "ContainersReady" in pod_conditions(pod) else "Ready"
    return lasting.condition_true_for(pod, told)


def awaits_discovery(pod: Manifest) -> bool:
    """Return whether all that a worker's pod lacks to be Ready is that HAProxy sends it connections."""
    gates = (pod.get("spec") or {}).get("readinessGates") or []
    if pod["metadata"].get("deletionTimestamp") or {"conditionType": LOAD_BALANCED_CONDITION} not in gates:
        return False
    conditions = pod_conditions(pod)
    served = conditions.get("ContainersReady", {}).get("status") == "True"
    return served and conditions.get(LOAD_BALANCED_CONDITION, {}).get("status") != "True"


def is_discovered(sight: BalancerView, served: float) -> bool:
    """Return whether a pod that waits to be found, and has served for so many seconds, may be Ready.

    Where no HAProxy answers the operator, it may be after a while: a node must be possible to drain.
    """
    if sight.is_unresponsive:
        return served >= DISCOVERY_DEADLINE_SECONDS
    return sight.missing_reason is None


def load_balanced_condition(pod: Manifest, at: str) -> Manifest:
    """Return the manifest that sets the condition of a pod, as it is to be applied to its status."""
    metadata = pod["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {name: metadata[name] for name in ("name", "namespace", "uid")},
        "status": {
            "conditions": [
                {
                    "type": LOAD_BALANCED_CONDITION,
                    "status": "True",
                    "reason": "Found",
                    "lastTransitionTime": at,
                }
            ]
        },
    }


def parse_balancer_report(answer: Any) -> BalancerReport:
    """Read the answer of `GET /workers`; raises ValueError for what is none."""
    told = answer.get("workers") if isinstance(answer, dict) else None
    if not isinstance(told, list):
        raise ValueError("no list of workers")
    found = {}
    for item in told:
        if not isinstance(item, dict) or item.get("state") not in _STATES:
            raise ValueError("no worker")
        address, seconds = item.get("address"), item.get("seconds")
        if not isinstance(seconds, int) or isinstance(seconds, bool):
            raise ValueError("no seconds")
        text = None if address is None else str(ipaddress.ip_address(str(address)))
        found[str(item.get("name"))] = ServerState(text, item["state"], seconds)
    owners = answer.get("owners")
    return BalancerReport(found, owner_map_digest=owners if isinstance(owners, str) else None)


def _server_problem(name: str, report: BalancerReport, line: ServerState | None, pod: Manifest) -> str | None:
    worker = pod["metadata"]["name"]
    if report.workers is None:
        return f"{name} does not answer, so it is unknown whether {name} sends connections to {worker}"
    if line is None:
        return f"{name} does not list {worker}"
    if not _has_pod_address(line.address, pod):
        return f"{name} does not have the address of {worker} yet"
    if line.state != _UP:
        return f"{name} reports {worker} as {line.state} at {line.address}"
    return None


def _has_pod_address(address: str | None, pod: Manifest) -> bool:
    told = str((pod.get("status") or {}).get("podIP") or "")
    try:
        return address == str(ipaddress.ip_address(told))
    except ValueError:
        return False
