"""What the handlers share, passed to them by kopf as `memo.operator`."""

import asyncio
from dataclasses import dataclass, field

from proofgate_operator.handlers.answers import Answers
from proofgate_operator.handlers.applied import Writes
from proofgate_operator.handlers.attachments import Attachments
from proofgate_operator.handlers.audits import Audits
from proofgate_operator.handlers.claims import Claims
from proofgate_operator.handlers.heartbeat import Heartbeat
from proofgate_operator.handlers.loops import Loops
from proofgate_operator.handlers.orphans import Orphans
from proofgate_operator.handlers.readers import Readers
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.kube.client import Client
from proofgate_operator.settings import Settings
from proofgate_operator.workers.reports import WorkerReports

#: Reconciles at the same time: a thousand gateways that begin together shall not fill the memory together.
_CONCURRENT_RECONCILES = 16


@dataclass
class Operator:
    """One running operator."""

    client: Client
    settings: Settings
    requeues: Requeues = field(default_factory=Requeues)
    readers: Readers = field(default_factory=Readers)
    heartbeat: Heartbeat = field(default_factory=Heartbeat)
    workers: WorkerReports = field(default_factory=WorkerReports)
    writes: Writes = field(default_factory=Writes)
    attachments: Attachments = field(default_factory=Attachments)
    loops: Loops = field(default_factory=Loops)
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CONCURRENT_RECONCILES))

    def __post_init__(self) -> None:
        self.claims = Claims(self.client, self.settings.release)
        self.orphans = Orphans(self.client, self.requeues)
        self.answers = Answers(self.client, self.workers.answers, self.requeues)
        self.audits = Audits(self.client, self.workers.audits, self.requeues)

    def __copy__(self) -> "Operator":
        """Kopf copies its memo for every object; the operator in it stays one."""
        return self
