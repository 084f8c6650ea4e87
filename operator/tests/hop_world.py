"""TLS between workers and HAProxies that are replaced and load files in any order.

After every event, every HAProxy must reach every worker.
"""

import copy
import random
from collections.abc import Callable
from typing import Any

import yaml

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.internal_authority import renew_entries
from proofgate_operator.build.internal_tls import VOLUME, haproxy_endpoint, secret, worker_endpoint
from proofgate_operator.build.naming import START_ANNOTATION
from proofgate_operator.build.worker_config import ACCEPTED_FILE, CONFIG_FILE, text_digest
from proofgate_operator.plan.decide import ReconcilePlan, decide
from proofgate_operator.plan.observed_state import ObservedState, Ref
from proofgate_operator.plan.reports import WorkerReport
from tests.gateways import DEFAULTS
from tests.world import World

Manifest = dict[str, Any]
NOW = 1_900_000_000.0
CERTIFICATES = Ref("Secret", "demo-internal-tls")


def _secret_in(spec: Manifest) -> str | None:
    found = [volume for volume in spec["volumes"] if volume["name"] == VOLUME]
    return found[0]["secret"]["secretName"] if found else None


class HopWorld:
    """A gateway with two workers and two HAProxies."""

    def __init__(self, seed: int = 0, **changes: Any) -> None:
        self.world = World(**changes)
        self.now = NOW
        self.random = random.Random(seed)
        #: Each worker's pod template and the configuration file that it has loaded.
        self.workers: list[tuple[Manifest, str]] = []
        #: Each HAProxy's pod template.
        self.balancers: list[Manifest] = []
        #: The annotations that the operator wrote on pods, by pod name.
        self.marks: dict[str, Manifest] = {}

    @property
    def gateway(self) -> Gateway:
        return self.world.gateway

    def use(self, **changes: Any) -> None:
        self.world.manifest["spec"].update(changes)

    def template(self, kind: str, name: str) -> Manifest | None:
        live = self.world.children.get(Ref(kind, name))
        return copy.deepcopy(live["spec"]["template"]) if live else None

    @property
    def file(self) -> str:
        text: str = self.world.child("ConfigMap", "demo-config")["data"][CONFIG_FILE]
        return text

    def observed(self) -> ObservedState:
        reports = {
            number: WorkerReport(serving=True, file_digest=text_digest(file))
            for number, (_, file) in enumerate(self.workers)
        }
        return ObservedState(
            self.world.children,
            self.world.secrets,
            tuple(
                self._pod(f"demo-worker-{number}", template)
                for number, (template, _) in enumerate(self.workers)
            ),
            tuple(
                self._pod(f"demo-haproxy-{number}", template)
                for number, template in enumerate(self.balancers)
            ),
            worker_reports=reports,
            now=self.now,
        )

    def _pod(self, name: str, template: Manifest) -> Manifest:
        annotations = {**template["metadata"]["annotations"], **self.marks.get(name, {})}
        return {
            "metadata": {**template["metadata"], "name": name, "annotations": annotations},
            "spec": template["spec"],
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }

    def plan(self) -> ReconcilePlan:
        return decide(self.gateway, self.observed(), DEFAULTS)

    def reconcile(self, plan: ReconcilePlan | None = None) -> ReconcilePlan:
        plan = plan or self.plan()
        if plan.certificate_renewal is not None:
            sides = worker_endpoint(self.gateway), haproxy_endpoint(self.gateway)
            made = secret(
                self.gateway,
                renew_entries(
                    plan.certificate_renewal.entries, sides, self.now, plan.certificate_renewal.settled
                ),
            )
            made["metadata"]["resourceVersion"] = str(self.random.random())
            self.world.children[CERTIFICATES] = made
        self.world.carry_out(plan)
        self.marks |= {name: dict(annotations) for name, annotations in plan.pod_annotations.items()}
        return plan

    def begin(self) -> "HopWorld":
        """Create all objects, as in a cluster in which nothing else happens."""
        for _ in range(5):
            self.reconcile()
            self.balancers = self.balancers or self._new("Deployment", "demo-haproxy")
            if not self.workers:
                self.workers = [(made, self.file) for made in self._new("StatefulSet", "demo-worker")]
        return self

    def _new(self, kind: str, name: str) -> list[Manifest]:
        made = self.template(kind, name)
        return [made, copy.deepcopy(made)] if made else []

    def run(self, steps: int = 400) -> None:
        """Execute possible events in random order until none is possible."""
        for _ in range(steps):
            possible = self._possible()
            if not possible:
                return
            self.random.choice(possible)()
            self.check()
        raise AssertionError("it does not come to an end")

    def _possible(self) -> list[Callable[[], Any]]:
        found: list[Callable[[], Any]] = []
        plan = self.plan()
        if plan.manifests_to_apply or plan.certificate_renewal or plan.objects_to_delete:
            found.append(lambda: self.reconcile(plan))
        worker, balancer = (
            self.template("StatefulSet", "demo-worker"),
            self.template("Deployment", "demo-haproxy"),
        )
        for number, (template, file) in enumerate(self.workers):
            if file != self.file and self._usable(template):
                found.append(lambda number=number, template=template: self._set(number, template))
            if worker and template != worker:
                found.append(lambda number=number: self._set(number, worker))
        for number, template in enumerate(self.balancers):
            if balancer and template != balancer:
                found.append(lambda number=number: self.balancers.__setitem__(number, balancer))
        return found

    def _usable(self, template: Manifest) -> bool:
        """Return whether a worker has the files that the newest configuration names."""
        return "tls" not in yaml.safe_load(self.file) or _secret_in(template["spec"]) is not None

    def _set(self, number: int, template: Manifest) -> None:
        assert self._usable(template), "a worker cannot start"
        self.workers[number] = (template, self.file)

    def check(self) -> None:
        """Assert that every HAProxy reaches every worker and is trusted by it."""
        for balancer in self.balancers:
            shown = _secret_in(balancer["spec"])
            for template, file in self.workers:
                tls = yaml.safe_load(file).get("tls")
                plain = tls is None or tls["acceptPlain"]
                if shown is None:
                    assert plain, "a HAProxy without TLS in front of a worker that requires TLS"
                    continue
                assert tls is not None, "a HAProxy with TLS in front of a worker without TLS"
                known = {shown, _secret_in(template["spec"])}
                assert len(known) == 1 or known == {"haproxy-tls", "worker-tls"}, known

    @property
    def state(self) -> tuple[list[str | None], list[str]]:
        """The Secrets of the HAProxies, and the kind of connection that each worker accepts."""
        files = [yaml.safe_load(file).get("tls") for _, file in self.workers]
        takes = ["clear" if tls is None else "both" if tls["acceptPlain"] else "tls" for tls in files]
        return [_secret_in(template["spec"]) for template in self.balancers], takes

    @property
    def accepted(self) -> str | None:
        text: str | None = self.world.child("ConfigMap", "demo-config")["data"].get(ACCEPTED_FILE)
        return text

    def start_digests(self) -> set[str]:
        return {template["metadata"]["annotations"][START_ANNOTATION] for template in self.balancers}
