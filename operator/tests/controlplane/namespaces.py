"""A test's namespace with its operator, and the actions of users and of the kubelet in it."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from e2e.ports import free_port
from e2e.programs import Program, start_ready

from tests.controlplane.api import Manifest, resource_of, secret
from tests.controlplane.server import PATIENCE, ControlPlane, wait_for
from tests.gateways import ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY, SPEC
from tests.haproxy_bench import http_get

ACCOUNT = "proofgate-proofgate-operator"
#: The number of consecutive reconciles without a write after which a gateway counts as settled.
_REST = 4
#: The kinds that the operator creates, and the label of the objects that it created.
_MADE = ("sts", "deploy", "cronjob", "svc", "cm", "secret", "sa", "pvc", "pdb", "netpol")
_OURS = "app.kubernetes.io/managed-by=proofgate-operator"


@dataclass
class Namespace:
    """A namespace that enforces the PodSecurity profile `restricted`, and the operator that serves it."""

    plane: ControlPlane
    name: str
    operator: Program | None = None
    #: The gateway whose conditions the methods read.
    gateway: str = "demo"
    _started: list[Program] = field(default_factory=list)
    _health_port: int = 0
    _touches: int = 0

    def __post_init__(self) -> None:
        self._audit_begins = self.plane.audit_log.stat().st_size

    @property
    def account(self) -> str:
        """The user name of its operator."""
        return f"system:serviceaccount:{self.name}:{ACCOUNT}"

    def start(self, **settings: str) -> Program:
        """Start the operator with exactly the chart's permissions, and wait until it is ready.

        All operators of the namespace write to one log.
        """
        token = self.plane.api.token(ACCOUNT, self.name)
        kubeconfig = self.plane.write_kubeconfig(self.plane.folder / f"{self.name}.operator", token)
        environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "WATCH_NAMESPACES": self.name,
            "WORKER_IMAGE": "worker:test",
            "HAPROXY_IMAGE": "haproxy:test",
            "HEALTH_HOST": "127.0.0.1",
            "LOG_FORMAT": "text",
            "RECHECK_SECONDS": "0.2",
            **settings,
        }
        command = (str(Path(sys.executable).parent / "proofgate-operator"),)

        def begin() -> Program:
            self._health_port = free_port()
            own = {**environment, "HEALTH_PORT": str(self._health_port)}
            program = Program.start(
                f"operator-{self.name}", self.plane.folder, (), command, env=own, cwd=self.plane.folder
            )
            self._started.append(program)
            return program

        def wait(program: Program) -> bool:
            port = self._health_port
            return program.wait_until(
                lambda: http_get(port, "/readyz")[0] == 200, "the operator is ready", PATIENCE
            )

        self.operator, _ = start_ready(begin, wait)
        return self.operator

    def end(self) -> None:
        """Stop every program that this namespace started."""
        for program in self._started:
            program.stop(signal.SIGKILL)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in the namespace, as a user does."""
        return self.plane.kubectl("-n", self.name, *arguments, stdin=stdin).stdout

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests in the namespace."""
        self.plane.apply(*manifests, namespace=self.name)

    def get(self, kind: str, name: str) -> Manifest | None:
        """Read an object of the namespace."""
        return self.plane.get(kind, name, self.name)

    def there(self, kind: str, name: str) -> Manifest:
        """Read an object that must exist."""
        found = self.get(kind, name)
        assert found is not None, f"there is no {kind} {name}"
        return found

    def find(self, kind: str, selector: str = "", fields: str = "") -> list[Manifest]:
        """Read the objects of a kind with these labels and fields."""
        return self.plane.api.find(kind, self.name, selector, fields)

    def names(self, kind: str, selector: str = "") -> list[str]:
        """Return the names of the objects of a kind with these labels."""
        return [found["metadata"]["name"] for found in self.find(kind, selector)]

    def patch(self, kind: str, name: str, change: Manifest, subresource: str = "") -> None:
        """Apply a merge patch."""
        self.plane.api.patch(kind, name, change, self.name, subresource)

    def annotate(self, kind: str, name: str, **annotations: str) -> None:
        """Add annotations to an object."""
        self.patch(kind, name, {"metadata": {"annotations": annotations}})

    def scale(self, replicas: int) -> None:
        """Set the number of workers through the scale subresource, as an autoscaler does."""
        self.patch("ggw", self.gateway, {"spec": {"replicas": replicas}}, "scale")

    def delete(self, kind: str, name: str, grace: int | None = None) -> None:
        """Start to delete an object."""
        self.plane.api.delete(kind, name, self.name, grace)

    def delete_gateway(self) -> None:
        """Delete the gateway, and wait until it is gone."""
        self.delete("ggw", self.gateway)
        wait_for(lambda: self.get("ggw", self.gateway) is None, "the gateway is gone")

    def give_secrets(self, *names: str) -> None:
        """Create the named Secrets; without names, all Secrets that the gateway refers to."""
        entries = {
            "acme-keys": {"first": ACME_KEY, "second": ACME_OTHER_KEY},
            "globex-keys": {"only": GLOBEX_KEY},
            "openai": {"api_key": "sk-upstream-0123456789"},
        }
        self.apply(*(secret(name, **entries[name]) for name in names or entries))

    def objects(self) -> set[str]:
        """Return the objects that the operator created and their pods, as kind/name."""
        kinds = (*_MADE, "pod")
        return {f"{resource_of(kind)}/{name}" for kind in kinds for name in self.names(kind, _OURS)}

    def writes(self) -> list[str]:
        """Return the operators' writes so far, as verb and object, in order.

        The API server logs a write before executing it. Leases are omitted: operators renew them all the time.
        """
        with self.plane.audit_log.open("rb") as log:
            log.seek(self._audit_begins)
            # The last line may still be incomplete.
            lines = log.read().rpartition(b"\n")[0].splitlines()
        mine = [line for line in lines if self.account.encode() in line]
        events = [event for event in map(json.loads, mine) if event["user"]["username"] == self.account]
        found = [(event["verb"], event["objectRef"]) for event in events]
        return [
            f"{verb} {ref['resource']}/{ref.get('name', '')}"
            for verb, ref in found
            if ref["resource"] != "leases"
        ]

    def reconciles(self) -> int:
        """Return how often the operator that started last has reconciled."""
        return self._count("reconciles")

    def writes_of_the_last(self) -> int:
        """Return the number of writes from the metrics of the operator that started last."""
        return self._count("writes")

    def _count(self, what: str) -> int:
        text = http_get(self._health_port, "/metrics")[1]
        counts = re.findall(rf"(?m)^proofgate_operator_{what}_total\{{.*\}} (\S+)$", text)
        return int(sum(map(float, counts)))

    def reconciled(self, since: int) -> None:
        """Wait until the operator has reconciled more than `since` times."""
        wait_for(lambda: self.reconciles() > since, f"more than {since} reconciles")

    def reconcile(self) -> None:
        """Trigger a reconcile by a new version of a Secret that the gateway names; wait for the reconcile."""
        before = self.reconciles()
        self._touches += 1
        self.annotate("secret", "acme-keys", touched=str(self._touches))
        self.reconciled(before)

    def rest(self, reconcile: Callable[[], None] | None = None) -> None:
        """Wait until the operator has reconciled several times in a row without a write.

        The operator or a controller may still write one last status after the gateway has settled.
        `reconcile` replaces the default trigger, a changed Secret.
        """
        deadline, silent = time.monotonic() + PATIENCE, 0
        while silent < _REST:
            before = self.writes()
            (reconcile or self.reconcile)()
            after = self.writes()
            silent = silent + 1 if after == before else 0
            assert time.monotonic() < deadline, f"written again and again: {after[-10:]}"

    def report(self) -> str:
        """Return the gateway's conditions and the operator's output."""
        kinds = ("Ready", "Progressing", "ResolvedRefs", "ConfigValid")
        conditions = "\n".join(f"{kind}: {self.condition(kind)}" for kind in kinds)
        return f"{conditions}\n{self.operator.report if self.operator else 'no operator was started'}"

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition of the gateway."""
        found = self.get("ggw", self.gateway) or {}
        for condition in found.get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return condition["status"], condition["reason"], condition["message"]
        return "", "", ""

    def wait_condition(self, kind: str, status: str, reason: str) -> str:
        """Wait for a condition and return its message."""

        def messages() -> list[str]:
            found = self.condition(kind)
            return [found[2]] if found[:2] == (status, reason) else []

        return wait_for(messages, f"{kind} {status} {reason}")[0]

    def wait_event(self, reason: str) -> None:
        """Wait for an Event; the operator emits it after it has set the condition."""
        wait_for(lambda: self.find("event", fields=f"reason={reason}"), f"an Event {reason}")

    def make_ready(self) -> None:
        """Write the status that the volume binder and the kubelet would write: claims bound, pods ready."""
        for claim in self.find("pvc"):
            if claim.get("status", {}).get("phase") != "Bound":
                self.plane.api.patch_status("pvc", claim["metadata"]["name"], {"phase": "Bound"}, self.name)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        for pod in self.find("pod"):
            if pod["status"].get("conditions") != ready["conditions"]:
                self.plane.api.patch_status("pod", pod["metadata"]["name"], ready, self.name)

    def settle(self) -> None:
        """Report readiness until the gateway is Ready and Progressing is Settled."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.make_ready()
            if self._is_settled():
                return
            assert time.monotonic() < deadline, self.report()
            time.sleep(0.05)

    def _is_settled(self) -> bool:
        found = self.get("ggw", self.gateway) or {}
        status = found.get("status", {})
        told = {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions", [])}
        return bool(
            told.get("Ready", ("", ""))[0] == "True"
            and told.get("Progressing", ("", ""))[1] == "Settled"
            # The operator may not have seen the user's last change yet.
            and status["observedGeneration"] == found["metadata"]["generation"]
        )


def gateway_manifest(**changes: Any) -> Manifest:
    """Return the manifest of a gateway as a user writes it."""
    spec = yaml.safe_load(yaml.safe_dump(SPEC))
    return {
        "apiVersion": "proofgate.dev/v1alpha1",
        "kind": "GovernanceGateway",
        "metadata": {"name": "demo"},
        "spec": {**spec, **changes},
    }


def somebody_elses_service(name: str) -> Manifest:
    """Return a Service of another owner with a name that the operator needs."""
    spec = {"ports": [{"port": 80}], "selector": {"app": name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def role_binding(name: str, cluster_role: str, user: str) -> Manifest:
    """Return a RoleBinding that grants a ClusterRole to a user in one namespace."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": cluster_role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
