"""Polls the probe agents next to HAProxy, so that unanswered requests are reported even if nothing else
happens."""

import asyncio

from proofgate_operator.build import haproxy
from proofgate_operator.handlers.polling import poll_forever
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.kube.client import Client
from proofgate_operator.workers.request_probe_reports import POLL_SECONDS, RequestProbeReports

_COMPONENT_LABEL = "app.kubernetes.io/component"


class RequestProbePoller:
    """Polls the probe agents. Reconciles register the gateways to poll."""

    def __init__(self, client: Client, answers: RequestProbeReports, requeues: Requeues) -> None:
        self._client = client
        self._answers = answers
        self._requeues = requeues

    async def run(self) -> None:
        """Poll the agents until cancelled."""
        await poll_forever("the HAProxy sidecars", POLL_SECONDS, self.poll)

    async def poll(self) -> None:
        """Poll the agents that are due, and requeue a gateway if the results of its agents changed."""
        await asyncio.gather(*(self._poll_gateway(*key) for key in self._answers.known_gateways()))

    async def _poll_gateway(self, namespace: str, gateway: str) -> None:
        pods = self._client.store.list_for_gateway("Pod", namespace, gateway)
        balancers = [
            pod for pod in pods if pod["metadata"]["labels"].get(_COMPONENT_LABEL) == haproxy.COMPONENT
        ]
        before = self._answers.change_count(namespace, gateway)
        await self._answers.reports(namespace, gateway, balancers)
        if self._answers.change_count(namespace, gateway) != before:
            self._requeues.requeue(namespace, gateway)
