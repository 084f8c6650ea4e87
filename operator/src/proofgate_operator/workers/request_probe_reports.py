"""The latest results of the probe requests of agents next to HAProxy, and when to ask again."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.pods import is_ready
from proofgate_operator.plan.request_probes import RequestProbeReport
from proofgate_operator.workers.admin_port import AdminPort

#: Seconds between two requests to the agents of one gateway.
POLL_SECONDS = 10.0


@dataclass
class _CachedReports:
    pods: frozenset[str]
    polled_at: float
    reports: dict[str, RequestProbeReport]
    epoch: int = 1


@dataclass
class RequestProbeReports:
    """The probe results of the agents of all gateways. `clock` returns monotonic seconds.

    A pod that is not Ready is not asked. A silent agent is no evidence about requests.
    """

    admin_port: AdminPort
    clock: Callable[[], float] = time.monotonic
    _cached: dict[tuple[str, str], _CachedReports] = field(default_factory=dict)

    async def reports(
        self, namespace: str, gateway: str, pods: Iterable[Manifest]
    ) -> dict[str, RequestProbeReport]:
        """Return the agents' results by pod name; they are asked again if that is due."""
        key, now = (namespace, gateway), self.clock()
        ready = [pod for pod in pods if is_ready(pod)]
        uids = frozenset(pod["metadata"]["uid"] for pod in ready)
        kept = self._cached.get(key)
        if kept is None or kept.pods != uids or now - kept.polled_at >= POLL_SECONDS:
            told = await asyncio.gather(*(self.admin_port.fetch_request_probe(pod) for pod in ready))
            answers = {
                pod["metadata"]["name"]: answer
                for pod, answer in zip(ready, told, strict=True)
                if answer is not None
            }
            epoch = kept.epoch if kept else 1
            changed = kept is not None and kept.reports != answers
            self._cached[key] = _CachedReports(uids, now, answers, epoch + changed)
        return dict(self._cached[key].reports)

    def known_gateways(self) -> list[tuple[str, str]]:
        """Return the namespace and gateway of all agents that were asked before."""
        return list(self._cached)

    def change_count(self, namespace: str, gateway: str) -> int:
        """Return a number that changes whenever the results change."""
        kept = self._cached.get((namespace, gateway))
        return kept.epoch if kept else 0

    def remove_gateway(self, namespace: str, gateway: str) -> None:
        """Drop the records of a deleted gateway."""
        self._cached.pop((namespace, gateway), None)
