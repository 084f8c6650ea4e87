"""What the agents beside HAProxy told last of the requests that they send, and when they are asked anew."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.answers import AnswerReport
from proofgate_operator.plan.pods import is_ready
from proofgate_operator.workers.admin_port import AdminPort

#: Between two questions to the agents of one gateway.
ASK_SECONDS = 10.0


@dataclass
class _Kept:
    pods: frozenset[str]
    asked: float
    answers: dict[str, AnswerReport]
    epoch: int = 1


@dataclass
class AnswerReports:
    """The answers of the agents of all gateways. `clock` is monotonic seconds.

    A pod that is not Ready is not asked, and an agent that does not answer says nothing of requests.
    """

    admin_port: AdminPort
    clock: Callable[[], float] = time.monotonic
    _kept: dict[tuple[str, str], _Kept] = field(default_factory=dict)

    async def reports(
        self, namespace: str, gateway: str, pods: Iterable[Manifest]
    ) -> dict[str, AnswerReport]:
        """Return what the agents told, by the names of their pods; they are asked if that is due."""
        key, now = (namespace, gateway), self.clock()
        ready = [pod for pod in pods if is_ready(pod)]
        uids = frozenset(pod["metadata"]["uid"] for pod in ready)
        kept = self._kept.get(key)
        if kept is None or kept.pods != uids or now - kept.asked >= ASK_SECONDS:
            told = await asyncio.gather(*(self.admin_port.answers(pod) for pod in ready))
            answers = {
                pod["metadata"]["name"]: answer
                for pod, answer in zip(ready, told, strict=True)
                if answer is not None
            }
            epoch = kept.epoch if kept else 1
            changed = kept is not None and kept.answers != answers
            self._kept[key] = _Kept(uids, now, answers, epoch + changed)
        return dict(self._kept[key].answers)

    def known(self) -> list[tuple[str, str]]:
        """Return the gateways, with their namespaces, whose agents were asked before."""
        return list(self._kept)

    def epoch(self, namespace: str, gateway: str) -> int:
        """Return a number that is another one whenever another thing is told."""
        kept = self._kept.get((namespace, gateway))
        return kept.epoch if kept else 0

    def forget(self, namespace: str, gateway: str) -> None:
        """Drop what is kept of a gateway that is gone."""
        self._kept.pop((namespace, gateway), None)
