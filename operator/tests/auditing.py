"""An auditor for tests: its key, its notes, and its start on a state."""

import asyncio
import base64
import hashlib
import itertools
import logging
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proofgate_operator.build.auditor import held_aggregate_entry
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.handlers.apply_history import ApplyHistory
from proofgate_operator.handlers.reconcile import ReconcileResult, reconcile
from proofgate_operator.plan.audit_reports import UNREACHABLE_AUDITOR, AuditReport, Finding
from proofgate_operator.workers.audit_reports import AuditReports
from proofgate_operator.workers.reports import WorkerReports
from tests.fake_cluster import FakeCluster
from tests.gateways import DEFAULTS, NAMESPACE, UID, secret

Manifest = dict[str, Any]

ORIGIN = "audit.example.com/team/demo"
KEY = SigningKey(ORIGIN, b"\x07" * 32)
AUDITOR: Manifest = {"signingKeySecretRef": {"name": "auditor-key"}}
ROLLBACK = Finding(
    "rollback", "proofgate.dev/team/demo/0/X", "diverged", 1_700_000_000_000_000, "it was set back"
)
STALL = Finding("stalled", "proofgate.dev/team/demo/1/Y", "incomplete", 1_700_000_001_000_000, "records wait")
LOG = logging.getLogger("test")


def witness_key(name: str, seed: bytes) -> str:
    """The vkey of a witness (c2sp.org/tlog-cosignature)."""
    public = b"\x04" + Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    key_hash = hashlib.sha256(name.encode() + b"\n" + public).digest()[:4]
    return f"{name}+{key_hash.hex()}+{base64.b64encode(public).decode()}"


WITNESS_KEYS = witness_key("witness.example/a", b"\x01" * 32), witness_key("witness.example/b", b"\x02" * 32)
POLICY = f"""# Both have to cosign.
log {KEY.verifying_text}
witness a {WITNESS_KEYS[0]} https://a.example/w
witness b {WITNESS_KEYS[1]} https://b.example:8443
group both all a b
quorum both
"""
WITNESSED: Manifest = {**AUDITOR, "witnesses": {"policy": POLICY}}
#: Each reconcile is later than the last by more than the interval between writes of the held checkpoint.
CLOCK = itertools.count(2_000_000_000.0, 61.0)


def key_secret(key: SigningKey = KEY) -> Manifest:
    return secret("auditor-key", signing_key=key.signing_text)


def note(size: int, root: bytes = bytes(32), key: SigningKey = KEY, origin: str | None = None) -> str:
    name = origin or key.name
    text = f"{name}\n{size}\n{base64.b64encode(root).decode()}\n"
    private = Ed25519PrivateKey.from_private_bytes(key.seed)
    public = b"\x01" + private.public_key().public_bytes_raw()
    key_hash = hashlib.sha256(name.encode() + b"\n" + public).digest()[:4]
    return f"{text}\n— {name} {base64.b64encode(key_hash + private.sign(text.encode())).decode()}\n"


def report(size: int = 3, *findings: Finding, **more: Any) -> AuditReport:
    codes = [finding.code for finding in findings]
    counted = tuple((code, codes.count(code)) for code in sorted(set(codes)))
    told = {
        "checkpoint": note(size),
        "last_poll_at": 1_800_000_000.0,
        "newest_head_at": 1_800_000_000.0,
        **more,
    }
    return AuditReport(finding_counts=counted, findings=findings, **told)


class Told(AuditReports):
    """An auditor that always returns the test's report."""

    answer: AuditReport | None = UNREACHABLE_AUDITOR

    async def report(self, namespace: str, gateway: str, pod: Manifest | None) -> AuditReport | None:
        return self.answer if pod is not None else None


class Asked(WorkerReports):
    """Workers without reports, and an auditor that returns the test's report."""

    def __init__(self, answer: AuditReport | None = UNREACHABLE_AUDITOR) -> None:
        now = next(CLOCK)
        super().__init__(time_now=lambda: now)
        self.audits: Told = Told(self.admin_port)
        self.audits.answer = answer


def reconcile_with(cluster: FakeCluster, asked: Asked) -> ReconcileResult:
    return asyncio.run(reconcile(cluster, NAMESPACE, "demo", UID, DEFAULTS, LOG, asked, ApplyHistory()))


class Process:
    """The auditor's process with a state; it starts by the rule of `proofgate audit run --held`."""

    def __init__(self) -> None:
        #: Number of heads in its log; None for an empty state.
        self.heads: int | None = None
        #: Number of logs that it has started.
        self.beginnings = 0

    def start(self, cluster: FakeCluster) -> AuditReport:
        """Start with the checkpoint that the cluster holds; report one more head, or SILENT if it refuses."""
        pod = cluster.objects.get(("Pod", NAMESPACE, "demo-auditor-0"))
        if pod is None:
            return UNREACHABLE_AUDITOR
        held = cluster.objects.get(("ConfigMap", NAMESPACE, "demo-auditor"), {}).get("data", {})
        known = held.get(held_aggregate_entry(ORIGIN))
        size = int(known.split("\n")[1]) if known else None
        if self.heads is None and size is not None:
            message = "proofgate: the auditor's state is lost: put it back [auditor_state_lost]"
            pod["status"] = {
                "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [{"lastState": {"terminated": {"message": f"earlier\n{message}\n"}}}],
            }
            return UNREACHABLE_AUDITOR
        assert size is None or (self.heads or 0) >= size, "the held checkpoint was never in the state"
        if self.heads is None:
            self.heads, self.beginnings = 0, self.beginnings + 1
        self.heads += 1
        return report(self.heads)
