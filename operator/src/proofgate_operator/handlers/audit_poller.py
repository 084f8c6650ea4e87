"""Auditors: what they tell is part of what is observed, and each finding becomes an Event."""

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
    """Return what was seen together with what the auditor tells."""
    pod = seen.auditor_pod if gateway.enabled_auditor else None
    return replace(seen, audit_report=await audits.report(gateway.namespace, gateway.name, pod))


async def create_finding_events(
    client: Client, audits: AuditReports, gateway: Gateway, seen: ObservedState
) -> None:
    """Make an Event of each finding that has none. One that is refused is tried again by the next
    reconcile."""
    told = audits.reported_findings(gateway.namespace, gateway.name)
    findings = seen.audit_report.findings if seen.audit_report else ()
    events = [finding_event(gateway, finding, time_of(time.time())) for finding in findings]
    # Only what is still told can be told again.
    told.intersection_update([event["metadata"]["name"] for event in events])
    for event in events:
        name = event["metadata"]["name"]
        if name in told:
            continue
        try:
            await create(client, event)
        except ApiError as error:
            # An event is a courtesy: a namespace that refuses it is not a reason to stop.
            _log.debug("event refused: %s", error.reason)
            return
        told.add(name)


class AuditPoller:
    """Asks the auditors again and again, so that what they find is told although nothing else happens.

    Which there are, reconciles tell.
    """

    def __init__(self, client: Client, audits: AuditReports, requeues: Requeues) -> None:
        self._client = client
        self._audits = audits
        self._requeues = requeues

    async def run(self) -> None:
        """Ask them, for ever."""
        await poll_forever("the auditors", POLL_SECONDS, self.poll)

    async def poll(self) -> None:
        """Ask each that is due, and have its gateway reconciled if it tells something else than before."""
        await asyncio.gather(*(self._poll_gateway(*key) for key in self._audits.known_gateways()))

    async def _poll_gateway(self, namespace: str, gateway: str) -> None:
        pod = self._client.store.get("Pod", namespace, f"{Names(gateway).auditor}-0")
        before = self._audits.change_count(namespace, gateway)
        await self._audits.report(namespace, gateway, pod)
        if self._audits.change_count(namespace, gateway) != before:
            self._requeues.requeue(namespace, gateway)
