"""Reports of the agents next to HAProxy about workers, and how long an agent has been silent."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.balancers import BalancerReport, is_reachable
from proofgate_operator.workers.admin_port import AdminPort


@dataclass
class BalancerReports:
    """The reports of all HAProxy pods. `clock` returns monotonic seconds."""

    admin_port: AdminPort
    clock: Callable[[], float] = time.monotonic
    #: The time since which a Ready pod has not answered, by namespace, gateway and the pod's uid.
    _silent_since: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    async def reports(
        self, namespace: str, gateway: str, pods: Iterable[Manifest]
    ) -> dict[str, BalancerReport]:
        """Ask every HAProxy that counts; return the answers by pod name."""
        ready = [pod for pod in pods if is_reachable(pod)]
        answers = await asyncio.gather(*(self.admin_port.fetch_balancer_report(pod) for pod in ready))
        before, now = self._silent_since.get((namespace, gateway), {}), self.clock()
        silent: dict[str, float] = {}
        found = {}
        for pod, answer in zip(ready, answers, strict=True):
            uid = pod["metadata"]["uid"]
            if answer is None:
                silent[uid] = before.get(uid, now)
            told = answer or BalancerReport(None, now - silent[uid])
            found[pod["metadata"]["name"]] = told
        self._silent_since[(namespace, gateway)] = silent
        return found

    def remove_gateway(self, namespace: str, gateway: str) -> None:
        """Drop the records of a deleted gateway."""
        self._silent_since.pop((namespace, gateway), None)
