"""A gateway whose tenants must be served by their own worker, and the HAProxies in front of it.

Each HAProxy has its own view of the maps and of the workers that are up. It receives a map some time after
the mark on its pod, and finds a worker some time after the worker has started to serve.
"""

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any

from proofgate_operator.plan.balancers import BalancerReport, ServerState
from proofgate_operator.plan.decide import ReconcilePlan
from tests.gateways import api_keys, secret
from tests.moving_world import MovingWorld

TENANTS = 12


@dataclass
class Balancer:
    """One HAProxy: seconds until it receives a map after its pod's mark, seconds until it finds a worker, and
    the tenants' owners in its map, each with a stand-in."""

    map_delay: int
    worker_delay: int
    due: list[float] = field(default_factory=list)
    owners: dict[str, list[int]] = field(default_factory=dict)
    #: The owners file, for the digest that the agent reports; None if the agent reports no digest.
    file: str | None = ""


class RequiredWorld(MovingWorld):
    """Records every tenant that a HAProxy would have rejected."""

    def __init__(self, replicas: int = 3, **changes: Any) -> None:
        self.balancers = {"demo-haproxy-a": Balancer(1, 2), "demo-haproxy-b": Balancer(4, 8)}
        #: Time, rejected tenant and the tenant's owner.
        self.turned_away: list[tuple[float, str, int]] = []
        self.serving = False
        names = [f"tenant-{number}" for number in range(TENANTS)]
        spec = {
            "tenants": [{"name": name, "apiKeys": api_keys(f"{name}-keys", "only")} for name in names],
            "loadBalancer": {"affinity": "Required"},
        }
        self.keys = {
            f"{name}-keys": secret(f"{name}-keys", only=f"sk-test-{name}-0123456789") for name in names
        }
        super().__init__(replicas, spec=spec, **changes)
        self.tick(10)
        self.settle()
        assert all(balancer.owners == self.written() for balancer in self.balancers.values())
        self.serving = True

    def settle(self, limit: int = 600) -> None:
        self.world.secrets |= self.keys
        self.world.balancers = self.world.balancers or [
            {
                "metadata": {"name": name, "annotations": {}},
                "status": {"podIP": "10.1.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
            }
            for name in self.balancers
        ]
        super().settle(limit)

    def asked_balancers(self) -> dict[str, BalancerReport]:
        """Each report contains only the HAProxy's view of the workers."""
        return {
            name: BalancerReport(
                {f"worker-{number}": self._line(number, told) for number in range(8)},
                owner_map_digest=None
                if told.file is None
                else hashlib.sha256(told.file.encode()).hexdigest(),
            )
            for name, told in self.balancers.items()
        }

    def _line(self, number: int, balancer: Balancer) -> ServerState:
        pod = self.pods.get(number)
        if pod is None or pod.ending:
            return ServerState(None, "maintenance", 0)
        return ServerState(pod.address, "up" if self._up(number, balancer) else "down", 0)

    def entry(self, name: str) -> str:
        """Return one of the written maps."""
        return base64.b64decode(self.world.child("Secret", "demo-tenants")["data"][name]).decode()

    def written(self) -> dict[str, list[int]]:
        """Return each tenant's written owner with its stand-in."""
        lines = [line.split() for line in self.entry("owners.map").splitlines()]
        found = {tenant: [int(name.rsplit("-", 1)[1]) for name in both.split(".")] for tenant, both in lines}
        assert len(found) == len(lines) == TENANTS, "a tenant has two owners, or none"
        assert all(len(set(both)) == len(both) for both in found.values()), "a worker is its own stand-in"
        return found

    def percents(self) -> dict[int, int]:
        """Return the written weight of each wanted worker."""
        lines = [line.split() for line in self.entry("weights.map").splitlines()]
        found = {int(name.rsplit("-", 1)[1]): int(weight) for name, weight in lines}
        return {number: found.get(number, 100) for number in range(self.asked)}

    def _apply(self, plan: ReconcilePlan) -> None:
        super()._apply(plan)
        for name in self.balancers.keys() & plan.pod_annotations.keys():
            balancer = self.balancers[name]
            balancer.due.append(self.now + balancer.map_delay)

    def _tick(self) -> None:
        super()._tick()
        for balancer in self.balancers.values():
            if any(due <= self.now for due in balancer.due):
                balancer.due = [due for due in balancer.due if due > self.now]
                balancer.owners = self.written()
                if balancer.file is not None:
                    balancer.file = self.entry("owners.map")
            if self.serving:
                self._serve(balancer)

    def _serve(self, balancer: Balancer) -> None:
        for tenant, both in balancer.owners.items():
            if not any(self._up(number, balancer) for number in both):
                self.turned_away.append((self.now, tenant, both[0]))

    def _up(self, number: int, balancer: Balancer) -> bool:
        pod = self.pods.get(number)
        if pod is None or pod.ending or pod.retiring or pod.serves_since is None:
            return False
        return self.now - pod.serves_since >= balancer.worker_delay
