"""What the agents beside HAProxy told last of the requests that they send, and when they are asked anew."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.pods import is_ready
from proofgate_operator.plan.request_probes import RequestProbeReport
from proofgate_operator.workers.admin_port import AdminPort

#: Between two questions to the agents of one gateway.
POLL_SECONDS = 10.0


@dataclass
class _CachedReports:
    pods: frozenset[str]
    polled_at: float
    reports: dict[str, RequestProbeReport]
    epoch: int = 1


@dataclass
class RequestProbeReports:
    """The answers of the agents of all gateways. `clock` is monotonic seconds.

    A pod that is not Ready is not asked, and an agent that does not answer says nothing of requests.
    """

    admin_port: AdminPort
    clock: Callable[[], float] = time.monotonic
    _cached: dict[tuple[str, str], _CachedReports] = field(default_factory=dict)

    async def reports(
        self, namespace: str, gateway: str, pods: Iterable[Manifest]
    ) -> dict[str, RequestProbeReport]:
        """Return what the agents told, by the names of their pods; they are asked if that is due."""
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
        """Return the gateways, with their namespaces, whose agents were asked before."""
        return list(self._cached)

    def change_count(self, namespace: str, gateway: str) -> int:
        """Return a number that is another one whenever another thing is told."""
        kept = self._cached.get((namespace, gateway))
        return kept.epoch if kept else 0

    def remove_gateway(self, namespace: str, gateway: str) -> None:
        """Drop what is kept of a gateway that is gone."""
        self._cached.pop((namespace, gateway), None)
