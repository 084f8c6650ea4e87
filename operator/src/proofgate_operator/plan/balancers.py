"""Evaluates the reports of the HAProxy instances about their workers.

Only HAProxy pods that are Ready and have an address count: clients reach no other ones. If such a pod does
not answer the operator, the operator waits for it for a limited time.
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

#: Every HAProxy normally finds a serving worker within a few seconds. After this many seconds, a rollout that
#: waits for it counts as stalled. The rollout continues automatically once the worker is found.
DISCOVERY_DEADLINE_SECONDS = 60
#: Seconds after which the operator no longer waits for a Ready HAProxy that does not answer.
UNRESPONSIVE_SECONDS = 60
UNRESPONSIVE_MESSAGE = (
    "no HAProxy pod that is Ready answers the operator on port"
    f" {haproxy.AGENT_PORT}, so it is unknown which workers get connections"
)
_UP = "up"
_STATES = (_UP, "down", "maintenance")


@dataclass(frozen=True)
class ServerState:
    """A worker in one HAProxy: its address, its state, and the seconds since the last change of the state."""

    address: str | None
    state: str
    seconds: int


@dataclass(frozen=True)
class BalancerReport:
    """The answer of the agent next to one HAProxy. `workers`: None if the agent has not answered for
    `unresponsive_seconds`.

    `owner_map_digest` is the SHA-256 of HAProxy's map of owners; None if it is not reported.
    """

    workers: Mapping[str, ServerState] | None = None
    unresponsive_seconds: float = 0.0
    owner_map_digest: str | None = None

    @property
    def has_timed_out(self) -> bool:
        """Whether the operator no longer waits for its answer."""
        return self.workers is None and self.unresponsive_seconds >= UNRESPONSIVE_SECONDS


@dataclass(frozen=True)
class BalancerView:
    """The state of one worker in all HAProxy instances.

    `missing_reason` is why not every HAProxy sends connections to the worker, None if all do. `is_overdue`:
    this has lasted too long. `connected_balancers` are the HAProxy pods that do. `is_unresponsive`: there are
    HAProxy pods, but none answers.
    """

    missing_reason: str | None = None
    is_overdue: bool = False
    connected_balancers: tuple[str, ...] = ()
    is_unresponsive: bool = False


@dataclass(frozen=True)
class Balancers:
    """The Ready HAProxy pods, and their reports by pod name."""

    ready: tuple[str, ...] = ()
    reports: Mapping[str, BalancerReport] = field(default_factory=dict)

    @property
    def is_unresponsive(self) -> bool:
        """Whether there are Ready HAProxy pods and none has answered for too long."""
        return bool(self.ready) and all(self._report(name).has_timed_out for name in self.ready)

    def view_of(self, pod: Manifest, served: float) -> BalancerView:
        """Return the view of one worker, which has passed the kubelet's probe for `served` seconds."""
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
            # A HAProxy that does not answer has a separate deadline.
            lasts = line is None or line.seconds >= DISCOVERY_DEADLINE_SECONDS
            late |= report.workers is not None and lasts and served >= DISCOVERY_DEADLINE_SECONDS
        told = "; ".join(missing[:2]) or None
        return BalancerView(told, late, tuple(up_at), self.is_unresponsive)

    def _report(self, name: str) -> BalancerReport:
        return self.reports.get(name, BalancerReport())


def is_reachable(pod: Manifest) -> bool:
    """Return whether clients may reach a HAProxy pod."""
    return is_ready(pod) and bool((pod.get("status") or {}).get("podIP"))


def ready_balancers(pods: Iterable[Manifest], reports: Mapping[str, BalancerReport]) -> Balancers:
    """Return the HAProxy pods that count among all of a gateway's HAProxy pods."""
    return Balancers(tuple(sorted(pod["metadata"]["name"] for pod in pods if is_reachable(pod))), reports)


def served_seconds(pod: Manifest, lasting: PodDurations) -> float:
    """Return the seconds for which a worker has passed the kubelet's probe; 0 while it does not."""
    told = "ContainersReady" if "ContainersReady" in pod_conditions(pod) else "Ready"
    return lasting.condition_true_for(pod, told)


def awaits_discovery(pod: Manifest) -> bool:
    """Return whether a worker's pod only waits for HAProxy's connections to become Ready."""
    gates = (pod.get("spec") or {}).get("readinessGates") or []
    if pod["metadata"].get("deletionTimestamp") or {"conditionType": LOAD_BALANCED_CONDITION} not in gates:
        return False
    conditions = pod_conditions(pod)
    served = conditions.get("ContainersReady", {}).get("status") == "True"
    return served and conditions.get(LOAD_BALANCED_CONDITION, {}).get("status") != "True"


def is_discovered(sight: BalancerView, served: float) -> bool:
    """Return whether a pod that waits for discovery, and has served for `served` seconds, may become Ready.

    If no HAProxy answers the operator, the pod becomes Ready after a delay, so that nodes can be drained.
    """
    if sight.is_unresponsive:
        return served >= DISCOVERY_DEADLINE_SECONDS
    return sight.missing_reason is None


def load_balanced_condition(pod: Manifest, at: str) -> Manifest:
    """Return the manifest that sets the pod's condition by an apply to its status."""
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
    """Parse the answer of `GET /workers`; raises ValueError if it is invalid."""
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
