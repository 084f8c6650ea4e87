"""A cluster whose HAProxies find workers late or never, or do not answer the operator."""

from dataclasses import dataclass
from typing import Any

from proofgate_operator.plan.balancers import BalancerReport, ServerState
from tests.moving_world import BEGIN, MovingWorld, Pod

Manifest = dict[str, Any]


@dataclass
class Finder:
    """One HAProxy: seconds until a serving worker is up in it (None: never), seconds until a retiring worker
    is no longer up, and the time since which its agent has not answered."""

    finds_after: float | None = 2
    loses_after: float = 1
    silent_since: float | None = None
    ready: bool = True


class FindingWorld(MovingWorld):
    """Checks every retirement of a worker against the state of every HAProxy."""

    def __init__(self, replicas: int = 2, **changes: Any) -> None:
        self.finders = {"demo-haproxy-a": Finder(), "demo-haproxy-b": Finder()}
        #: The time at which each worker was first seen retiring, by its pod's uid.
        self.retiring_at: dict[int, float] = {}
        super().__init__(replicas, **changes)

    def settle(self, limit: int = 600) -> None:
        self.note_balancers()
        super().settle(limit)

    def note_balancers(self) -> None:
        """Set the HAProxy pods to their current state."""
        self.world.balancers = [
            {
                "metadata": {"name": name, "annotations": {}},
                "status": {
                    "podIP": "10.1.0.1",
                    "conditions": [{"type": "Ready", "status": str(finder.ready)}],
                },
            }
            for name, finder in self.finders.items()
        ]

    def up_at(self, pod: Pod, finder: Finder) -> bool:
        """Return whether a HAProxy sends connections to a worker."""
        if pod.ending or pod.broken or pod.serves_since is None or finder.finds_after is None:
            return False
        if pod.retiring:
            since = self.retiring_at.setdefault(pod.uid, self.now)
            return self.now - since < finder.loses_after
        return self.now - pod.serves_since >= finder.finds_after

    def asked_balancers(self) -> dict[str, BalancerReport]:
        return {name: self._told(finder) for name, finder in self.finders.items() if finder.ready}

    def _told(self, finder: Finder) -> BalancerReport:
        if finder.silent_since is not None:
            return BalancerReport(None, self.now - finder.silent_since)
        return BalancerReport({f"worker-{number}": self._line(number, finder) for number in range(8)})

    def _line(self, number: int, finder: Finder) -> ServerState:
        pod = self.pods.get(number)
        if pod is None or pod.ending:
            return ServerState(None, "maintenance", 0)
        up = self.up_at(pod, finder)
        since = pod.serves_since or BEGIN
        return ServerState(pod.address, "up" if up else "down", int(self.now - since))

    def _retire(self, manifest: Manifest) -> None:
        leaving = manifest["metadata"]["name"]
        for name, finder in self.finders.items():
            if not finder.ready or finder.silent_since is not None:
                continue
            for pod in self.pods.values():
                if f"demo-worker-{pod.ordinal}" != leaving and not pod.ending:
                    assert self.up_at(pod, finder), f"{name} has not found worker {pod.ordinal}"
        super()._retire(manifest)

    def _delete(self, manifest: Manifest) -> None:
        pod = self.pods[int(manifest["metadata"]["name"].rsplit("-", 1)[1])]
        for name, finder in self.finders.items():
            if finder.ready and finder.silent_since is None:
                assert not self.up_at(pod, finder), f"{name} still sends connections to {pod.ordinal}"
        super()._delete(manifest)
