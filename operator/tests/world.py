"""A gateway and its observed state, for tests of decisions."""

import copy
from collections.abc import Iterable
from typing import Any

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import gateway_secrets
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.plan.decide import ReconcilePlan, decide
from proofgate_operator.plan.observed_state import ObservedState, Ref, ref_of
from proofgate_operator.plan.reports import WorkerReport
from tests.gateways import DEFAULTS, SPEC, manifest, user_secrets

Manifest = dict[str, Any]
PROVIDER: Manifest = SPEC["providers"][0]


_LEDGER = Ref("Secret", "demo-ledger")


class World:
    """A gateway and its observed state; `settle` executes every plan, as a perfect cluster would."""

    def __init__(self, **changes: Any) -> None:
        self.manifest = manifest(**changes)
        self.children: dict[Ref, Manifest | None] = {}
        self.secrets = user_secrets()
        self.pods: list[Manifest] = []
        self.balancers: list[Manifest] = []
        #: `.status.ledger` of the previous reconcile.
        self.ledger: Manifest = {}
        #: The workers' reports, by shard.
        self.reports: dict[int, WorkerReport] = {}

    @property
    def gateway(self) -> Gateway:
        return Gateway.from_manifest(self.manifest)

    def plan(self) -> ReconcilePlan:
        return decide(
            self.gateway,
            ObservedState(
                self.children,
                self.secrets,
                tuple(self.pods),
                tuple(self.balancers),
                ledger_status=self.ledger,
                worker_reports=self.reports,
            ),
            DEFAULTS,
        )

    def carry_out(self, plan: ReconcilePlan) -> None:
        for name in plan.secrets_to_generate:
            self.children[Ref("Secret", name)] = self._generated(name)
        for written in plan.manifests_to_apply:
            # The operator applies only the metadata of a generated Secret, so the data stays.
            kept = {"data": self.child("Secret", "demo-ledger")["data"]} if ref_of(written) == _LEDGER else {}
            self.children[ref_of(written)] = copy.deepcopy({**kept, **written})
        if plan.stop_auditor:
            self.child("StatefulSet", "demo-auditor")["spec"]["replicas"] = 0
        for ref in plan.objects_to_delete:
            self.children[ref] = None
        for found in (*self.pods, *self.balancers):
            if found["metadata"]["name"] in plan.pod_annotations:
                marked = found["metadata"].setdefault("annotations", {})
                found["metadata"]["annotations"] = {
                    **marked,
                    **plan.pod_annotations[found["metadata"]["name"]],
                }

    def _generated(self, name: str) -> Manifest:
        of = self.gateway
        if name == "demo-admin":
            return gateway_secrets.admin_secret(of, "admin-token")
        if name == "demo-export-key":
            key = SigningKey(gateway_secrets.export_key_name(of), b"\x0e" * 32)
            return gateway_secrets.export_key_secret(of, key.signing_text, key.verifying_text)
        signing = SigningKey("proofgate.dev/team/demo", bytes(32)).signing_text
        return gateway_secrets.ledger_secret(of, signing, "verifying")

    def settle(self) -> "World":
        for _ in range(10):
            plan = self.plan()
            if not plan.has_writes:
                return self
            self.carry_out(plan)
        raise AssertionError(f"no end of writes: {[ref_of(m) for m in plan.manifests_to_apply]}")

    def child(self, kind: str, name: str) -> Manifest:
        found = self.children[Ref(kind, name)]
        assert found is not None
        return found

    def condition(self, kind: ConditionType) -> tuple[str, str, str]:
        found = self.plan().status.condition(kind)
        return found.status.value, found.reason, found.message


def kinds(manifests: Iterable[Manifest]) -> set[str]:
    return {found["kind"] for found in manifests}


def pod(ordinal: int) -> Manifest:
    return {"metadata": {"name": f"demo-worker-{ordinal}"}}
