"""A retention job for tests: its key, its runs' reports, and its state across runs."""

import itertools
import json
from typing import Any

from proofgate_operator.build.ledger_key import LedgerKey, SigningKey
from proofgate_operator.build.naming import KEEPING_PLAN_ANNOTATION
from tests.gateways import NAMESPACE, secret

Manifest = dict[str, Any]

KEY = SigningKey("keeping.example.com/team/demo", b"\x09" * 32)
KEEPING: Manifest = {
    "signingKeySecretRef": {"name": "retention-key"},
    "retention": {
        "minimumDays": 30,
        "maximumDays": 365,
        "tenants": [{"name": "acme", "maximumDays": 90}, {"name": "team-a/globex", "minimumDays": 730}],
    },
    "holds": [
        {"name": "case-17", "tenant": "acme", "since": "2026-01-01T00:00:00Z", "reason": "litigation"},
        {"name": "audit", "all": True, "reason": "audit", "released": "done"},
    ],
}
LABELS = {
    "app.kubernetes.io/name": "proofgate",
    "app.kubernetes.io/component": "retention",
    "app.kubernetes.io/managed-by": "proofgate-operator",
    "proofgate.dev/gateway": "demo",
}


def key_secret(key: LedgerKey = KEY) -> Manifest:
    return secret("retention-key", signing_key=key.signing_text)


def report(**changes: Any) -> Manifest:
    """Return the report of a complete run."""
    said = {
        "v": 1,
        "plan": "ab12",
        "retentionKeyName": KEY.name,
        "result": "ok",
        "holds": 1,
        "known": 2,
        "removed": 3,
    }
    return {
        **said,
        "removedNow": 1,
        "erased": 40,
        "erasedNow": 0,
        "staying": {"held": 1, "young": 5},
        **changes,
    }


def run(words: str, day: int = 1, exit_code: int = 0, number: int = 0) -> Manifest:
    """Return the pod of a run that ended on this day with this termination message."""
    terminated = {
        "exitCode": exit_code,
        "reason": "Completed" if exit_code == 0 else "Error",
        "finishedAt": f"2026-12-{day:02d}T02:31:00Z",
        "message": words,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"demo-retention-{day}-{number}",
            "namespace": NAMESPACE,
            "labels": LABELS,
            "creationTimestamp": f"2026-12-{day:02d}T02:30:00Z",
            "ownerReferences": [{"kind": "Job", "name": f"demo-retention-{day}", "controller": True}],
        },
        "status": {
            "phase": "Succeeded" if exit_code == 0 else "Failed",
            "containerStatuses": [{"name": "retention", "state": {"terminated": terminated}}],
        },
    }


def said(day: int = 1, exit_code: int = 0, **changes: Any) -> Manifest:
    """Return the pod of a run with a report."""
    return run(json.dumps(report(**changes)), day, exit_code)


class State:
    """The retention job's state; a run changes it by the plan on its pod, as `proofgate retention` does."""

    def __init__(self) -> None:
        #: Number of holds seen so far; None for a missing state.
        self.holds: int | None = None
        #: Number of states that it has started.
        self.beginnings = 0
        self._days = itertools.count(1)

    def run(self, cronjob: Manifest | None) -> Manifest | None:
        """Run once, and return the run's pod; None if no run is allowed."""
        if cronjob is None or cronjob["spec"]["suspend"]:
            return None
        template = cronjob["spec"]["jobTemplate"]["spec"]["template"]
        plan = json.loads(template["metadata"]["annotations"][KEEPING_PLAN_ANNOTATION])
        assert plan["retentionKey"] == KEY.verifying_text, "another key must change nothing"
        day = next(self._days)
        lost = {"holds": None, "known": None, "message": "it is not there"}
        bare = {name: value for name, value in report(**lost).items() if value is not None}
        if self.holds is None and not plan.get("begin"):
            return run(json.dumps({**bare, "result": "keeping_state_missing"}), day, 1)
        if self.holds is None:
            self.holds, self.beginnings = 0, self.beginnings + 1
        assert self.holds >= plan.get("known", 0), "the known number was never in the state"
        self.holds = max(self.holds, 2)
        return said(day, known=self.holds, plan=plan["digest"])
