"""Polls the auditors, adds their reports to the observed state, and creates an Event for each finding."""

import asyncio
import logging
import time
from dataclasses import replace

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Names
from proofgate_operator.events import finding_event
from proofgate_operator.handlers.polling import poll_forever
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.kube.apply import create
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.workers.audit_reports import POLL_SECONDS, AuditReports

_log = logging.getLogger(__name__)


async def with_audit_report(audits: AuditReports, gateway: Gateway, seen: ObservedState) -> ObservedState:
    """Return the observed state together with the auditor's report."""
    pod = seen.auditor_pod if gateway.enabled_auditor else None
    return replace(seen, audit_report=await audits.report(gateway.namespace, gateway.name, pod))


async def create_finding_events(
    client: Client, audits: AuditReports, gateway: Gateway, seen: ObservedState
) -> None:
    """Create an Event for each finding that has none. The next reconcile tries a refused Event again."""
    told = audits.reported_findings(gateway.namespace, gateway.name)
    findings = seen.audit_report.findings if seen.audit_report else ()
    events = [finding_event(gateway, finding, time_of(time.time())) for finding in findings]
    # Forget the findings that the auditor no longer reports.
    told.intersection_update([event["metadata"]["name"] for event in events])
    for event in events:
        name = event["metadata"]["name"]
        if name in told:
            continue
        try:
            await create(client, event)
        except ApiError as error:
            # Events are best effort: a namespace that refuses one must not stop the reconcile.
            _log.debug("event refused: %s", error.reason)
            return
        told.add(name)


class AuditPoller:
    """Polls the auditors, so that findings are reported even if nothing else happens.

    Reconciles register the auditors.
    """

    def __init__(self, client: Client, audits: AuditReports, requeues: Requeues) -> None:
        self._client = client
        self._audits = audits
        self._requeues = requeues

    async def run(self) -> None:
        """Poll the auditors until cancelled."""
        await poll_forever("the auditors", POLL_SECONDS, self.poll)

    async def poll(self) -> None:
        """Poll each auditor that is due, and requeue its gateway if the report changed."""
        await asyncio.gather(*(self._poll_gateway(*key) for key in self._audits.known_gateways()))

    async def _poll_gateway(self, namespace: str, gateway: str) -> None:
        pod = self._client.store.get("Pod", namespace, f"{Names(gateway).auditor}-0")
        before = self._audits.change_count(namespace, gateway)
        await self._audits.report(namespace, gateway, pod)
        if self._audits.change_count(namespace, gateway) != before:
            self._requeues.requeue(namespace, gateway)
