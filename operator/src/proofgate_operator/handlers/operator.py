"""State that all handlers share; kopf passes it to them as `memo.operator`."""

import asyncio
from dataclasses import dataclass, field

from proofgate_operator.handlers.apply_history import ApplyHistory
from proofgate_operator.handlers.attachments import Attachments
from proofgate_operator.handlers.audit_poller import AuditPoller
from proofgate_operator.handlers.heartbeat import Heartbeat
from proofgate_operator.handlers.loops import GatewayLoops
from proofgate_operator.handlers.namespace_claims import NamespaceClaims
from proofgate_operator.handlers.orphans import OrphanedTenantReconciler
from proofgate_operator.handlers.request_probe_poller import RequestProbePoller
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.handlers.secret_references import SecretReferences
from proofgate_operator.kube.client import Client
from proofgate_operator.settings import Settings
from proofgate_operator.workers.reports import WorkerReports

#: Concurrent reconciles: many gateways that start together must not exhaust the memory.
_CONCURRENT_RECONCILES = 16


@dataclass
class Operator:
    """One running operator."""

    client: Client
    settings: Settings
    requeues: Requeues = field(default_factory=Requeues)
    secret_references: SecretReferences = field(default_factory=SecretReferences)
    heartbeat: Heartbeat = field(default_factory=Heartbeat)
    worker_reports: WorkerReports = field(default_factory=WorkerReports)
    apply_history: ApplyHistory = field(default_factory=ApplyHistory)
    attachments: Attachments = field(default_factory=Attachments)
    loops: GatewayLoops = field(default_factory=GatewayLoops)
    reconcile_semaphore: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(_CONCURRENT_RECONCILES)
    )

    def __post_init__(self) -> None:
        self.claims = NamespaceClaims(self.client, self.settings.release)
        self.orphans = OrphanedTenantReconciler(self.client, self.requeues)
        self.request_probes = RequestProbePoller(
            self.client, self.worker_reports.request_probes, self.requeues
        )
        self.audits = AuditPoller(self.client, self.worker_reports.audits, self.requeues)

    def __copy__(self) -> "Operator":
        """Return the same object: kopf copies its memo for every object, but there is only one operator."""
        return self
