"""Requests that the agents next to HAProxy send: whether they are answered is told although nothing else
happens."""

import asyncio

from proofgate_operator.build import haproxy
from proofgate_operator.handlers.asking import ask_for_ever
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.kube.client import Client
from proofgate_operator.workers.answer_reports import ASK_SECONDS, AnswerReports

_COMPONENT_LABEL = "app.kubernetes.io/component"


class Answers:
    """Asks the agents again and again. Of which gateways, reconciles tell."""

    def __init__(self, client: Client, answers: AnswerReports, requeues: Requeues) -> None:
        self._client = client
        self._answers = answers
        self._requeues = requeues

    async def keep(self) -> None:
        """Ask them, for ever."""
        await ask_for_ever("the agents next to HAProxy", ASK_SECONDS, self.ask)

    async def ask(self) -> None:
        """Ask those that are due, and have a gateway reconciled if its agents tell something else."""
        await asyncio.gather(*(self._ask(*key) for key in self._answers.known()))

    async def _ask(self, namespace: str, gateway: str) -> None:
        pods = self._client.store.of_gateway("Pod", namespace, gateway)
        balancers = [
            pod for pod in pods if pod["metadata"]["labels"].get(_COMPONENT_LABEL) == haproxy.COMPONENT
        ]
        before = self._answers.epoch(namespace, gateway)
        await self._answers.reports(namespace, gateway, balancers)
        if self._answers.epoch(namespace, gateway) != before:
            self._requeues.requeue(namespace, gateway)
