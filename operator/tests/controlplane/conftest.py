"""One control plane for the session, with the CRD from the chart; one namespace and one operator per test."""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.ports import free_port

from tests.controlplane.server import PATIENCE, ControlPlane, Process, binary, control_plane, wait_for
from tests.gateways import ACME_KEY, ACME_OTHER_KEY, GLOBEX_KEY, SPEC

CHART = Path(__file__).parents[3] / "charts" / "proofgate-operator"
RELEASE = "proofgate"
# What an installation has to give.
IMAGES = ("--set", "operator.image=operator:test", "--set", "workerImage=worker:test")
_numbers = itertools.count(1)

Manifest = dict[str, Any]


def helm(plane: ControlPlane, *arguments: str) -> str:
    """Run helm as the admin and return what it says."""
    environment = {
        **os.environ,
        "KUBECONFIG": str(plane.kubeconfig),
        "HELM_CACHE_HOME": str(plane.folder / "helm"),
        "HELM_CONFIG_HOME": str(plane.folder / "helm"),
        "HELM_DATA_HOME": str(plane.folder / "helm"),
    }
    result = subprocess.run(
        [binary("helm"), *arguments], capture_output=True, text=True, env=environment, cwd=plane.folder
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run the control plane, and install the CRD from the chart."""
    with control_plane(tmp_path_factory.mktemp("plane")) as running:
        running.kubectl("create", "namespace", "chart")
        helm(running, "install", "crds", str(CHART), "--namespace", "chart", *IMAGES)
        established = "--for=condition=Established"
        crds = ("crd/governancegateways.proofgate.dev", "crd/gatewaytenants.proofgate.dev")
        running.kubectl("wait", *crds, established, "--timeout=60s")
        yield running


@dataclass
class Namespace:
    """A namespace that enforces the restricted profile, and the operator that serves it."""

    plane: ControlPlane
    name: str
    operator: Process | None = None
    #: Whose conditions are asked for.
    gateway: str = "demo"

    def start(self, **settings: str) -> Process:
        """Start the operator with the permissions that the chart gives it, and no others.

        All operators of the namespace, and nobody else, write to one log.
        """
        token = self.plane.kubectl(
            "create", "token", "proofgate-proofgate-operator", "-n", self.name
        ).stdout.strip()
        environment = {
            "KUBECONFIG": str(self.plane.kubeconfig_for(token)),
            "WATCH_NAMESPACES": self.name,
            "WORKER_IMAGE": "worker:test",
            "HAPROXY_IMAGE": "haproxy:test",
            "HEALTH_HOST": "127.0.0.1",
            "HEALTH_PORT": str(free_port()),
            "LOG_FORMAT": "text",
            **settings,
        }
        command = str(Path(sys.executable).parent / "proofgate-operator")
        self.operator = self.plane.start(command, environment=environment, log_name=f"operator-{self.name}")
        return self.operator

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in the namespace."""
        return self.plane.kubectl("-n", self.name, *arguments, stdin=stdin).stdout

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests in the namespace."""
        self.plane.apply(*manifests, namespace=self.name)

    def get(self, kind: str, name: str) -> Manifest | None:
        """Read an object of the namespace."""
        return self.plane.get(kind, name, self.name)

    def give_secrets(self, *names: str) -> None:
        """Make the Secrets that the gateway names, or those of them that are asked for."""
        entries = {
            "acme-keys": (f"--from-literal=first={ACME_KEY}", f"--from-literal=second={ACME_OTHER_KEY}"),
            "globex-keys": (f"--from-literal=only={GLOBEX_KEY}",),
            "openai": ("--from-literal=api-key=sk-upstream-0123456789",),
        }
        for name in names or entries:
            self.kubectl("create", "secret", "generic", name, *entries[name])

    def objects(self) -> set[str]:
        """Return what the operator has made, as kind/name."""
        kinds = (
            "statefulset,deployment,service,configmap,secret,serviceaccount,persistentvolumeclaim,"
            "poddisruptionbudget,networkpolicy,pod"
        )
        selector = "app.kubernetes.io/managed-by=proofgate-operator"
        return set(self.kubectl("get", kinds, "-l", selector, "-o", "name").split())

    def versions(self) -> dict[str, str]:
        """Return the resource version of everything in the namespace that the operator writes."""
        kinds = "ggw,sts,deploy,cronjob,svc,cm,secret,sa,pvc,pdb,netpol"
        items = json.loads(self.kubectl("get", kinds, "-o", "json"))["items"]
        return {
            f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for item in items
        }

    def quiet(self) -> dict[str, str]:
        """Wait until nothing has been written for two seconds, and return `versions`.

        What is settled may still have the last status report, or a controller's, on its way.
        """
        deadline = time.monotonic() + PATIENCE
        now = self.versions()
        while True:
            time.sleep(2)
            before, now = now, self.versions()
            if now == before:
                return now
            assert time.monotonic() < deadline, f"written again and again: {now.items() ^ before.items()}"

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition of the gateway."""
        found = self.get("ggw", self.gateway) or {}
        for condition in found.get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return condition["status"], condition["reason"], condition["message"]
        return "", "", ""

    def wait_condition(self, kind: str, status: str, reason: str) -> str:
        """Wait for a condition and return its message."""
        wait_for(lambda: self.condition(kind)[:2] == (status, reason), f"{kind} {status} {reason}")
        return self.condition(kind)[2]

    def wait_event(self, reason: str) -> None:
        """Wait for an Event: it comes after the condition that it tells of."""
        selector = f"--field-selector=reason={reason}"
        wait_for(lambda: self.kubectl("get", "events", selector, "-o", "name"), f"an Event {reason}")

    def make_ready(self) -> None:
        """Report what the binder and the kubelet would: every claim is bound, every pod is ready."""
        for name in self.kubectl("get", "pvc", "-o", "name").split():
            claim = name.removeprefix("persistentvolumeclaim/")
            self.plane.patch_status("pvc", claim, {"phase": "Bound"}, self.name)
        for name in self.kubectl("get", "pod", "-o", "name").split():
            conditions = [{"type": "Ready", "status": "True"}]
            pod = name.removeprefix("pod/")
            self.plane.patch_status("pod", pod, {"phase": "Running", "conditions": conditions}, self.name)

    def settle(self) -> None:
        """Report readiness until the gateway is Ready and nothing progresses."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.make_ready()
            if self.condition("Ready")[0] == "True" and self.condition("Progressing")[1] == "Settled":
                return
            assert time.monotonic() < deadline, (self.condition("Ready"), self.condition("Progressing"))
            time.sleep(0.2)


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[Namespace]:
    """Make a namespace and install the chart in it; the test starts the operator."""
    found = Namespace(plane, f"test-{next(_numbers)}")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found.name, "labels": labels}})
    own = ("--namespace", found.name, "--set", "crds.enabled=false")
    helm(plane, "install", RELEASE, str(CHART), *own, *IMAGES)
    yield found
    if found.operator and found.operator.popen.poll() is None:
        found.operator.stop()
    plane.kubectl("delete", "namespace", found.name, "--wait=false", "--ignore-not-found")


def gateway_manifest(**changes: Any) -> Manifest:
    """Return the gateway as a user writes it."""
    spec = yaml.safe_load(yaml.safe_dump(SPEC))
    return {
        "apiVersion": "proofgate.dev/v1alpha1",
        "kind": "GovernanceGateway",
        "metadata": {"name": "demo"},
        "spec": {**spec, **changes},
    }
