"""Access to the cluster for the demonstration and the tests: kubectl, helm and the API server."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from e2e.api_server import ApiError, ApiServer, api_server
from e2e.api_server import Object as Object
from e2e.programs import Program, start_ready

REPOSITORY = Path(__file__).resolve().parents[1]
CHART = REPOSITORY / "charts" / "proofgate-operator"
#: Maximum seconds of any wait: ten times the usual time on a busy machine.
PATIENCE = 300
T = TypeVar("T")


class CommandError(RuntimeError):
    """A failed command; `stderr` is its error output."""

    def __init__(self, command: list[str], stderr: str) -> None:
        super().__init__(f"{shlex.join(command)}\n{stderr}")
        self.stderr = stderr


@cache
def environment() -> dict[str, str]:
    """This process's environment with the cluster's kubeconfig, kubectl and helm."""
    lab = [sys.executable, "-m", "e2e.cluster", "env"]
    output = subprocess.run(lab, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    exported = dict(re.findall(r"^export (\w+)=(.*)$", output, re.MULTILINE))
    return {**os.environ, **{name: shlex.split(value)[0] for name, value in exported.items()}}


def run(command: list[str], stdin: str | None = None, timeout: float = 600) -> str:
    """Runs a command in the cluster's environment and returns what it printed. Raises CommandError."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=timeout, env=environment(), cwd=REPOSITORY
    )
    if done.returncode:
        raise CommandError(command, done.stderr + done.stdout)
    return done.stdout


def lab(*words: str) -> str:
    """Runs a command of the local cluster's tool, such as `recycle-volumes`."""
    return run([sys.executable, "-m", "e2e.cluster", *words])


def wait_until(condition: Callable[[], T], seconds: float, what: str, every: float = 0.2) -> T:
    """Polls until `condition` returns a true value, and returns it. Raises TimeoutError with what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain until {what}; at last: {found!r}")
        time.sleep(every)


def server() -> ApiServer:
    """The cluster's API server."""
    return api_server(Path(environment()["KUBECONFIG"]))


@dataclass(frozen=True)
class Namespace:
    """One namespace, by name."""

    name: str

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 600) -> str:
        return run(["kubectl", "--namespace", self.name, *arguments], stdin, timeout)

    def create(self, **labels: str) -> None:
        """Creates the namespace, with the strictest PodSecurity level enforced."""
        strict = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
        metadata = {"name": self.name, "labels": {**strict, **labels}}
        server().apply(None, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def exists(self) -> bool:
        return server().get("namespace", None, self.name) is not None

    def delete_gateways(self, wait: bool = True) -> None:
        """Deletes all gateways and waits until their pods are gone, even without an operator."""
        if not self.is_served("ggw"):
            return
        for gateway in self.list("ggw"):
            self.delete("ggw", gateway["metadata"]["name"], wait=False)
        if not wait:
            return
        wait_until(lambda: not self.list("ggw"), PATIENCE, f"the gateways of {self.name} are gone")
        # The namespace controller waits for half of the grace period of any remaining pod: five minutes.
        self.wait_gone("pod", selector="proofgate.dev/gateway")

    def is_served(self, kind: str) -> bool:
        """Whether the API server serves a kind."""
        try:
            self.list(kind)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def remove(self, wait: bool = True) -> None:
        """Deletes the namespace with its content, and waits until it is gone."""
        server().delete("namespace", None, self.name)
        if wait:
            wait_until(lambda: not self.exists(), PATIENCE, f"namespace {self.name} is gone")

    def apply(self, *manifests: Object) -> None:
        """Applies manifests. For a gateway or tenant, the manifest replaces the whole spec."""
        for manifest in manifests:
            server().apply(self.name, manifest)

    def delete(self, kind: str, name: str, *, wait: bool = True) -> None:
        """Deletes an object, if it exists, and waits until it is gone."""
        server().delete(kind, self.name, name)
        if wait:
            wait_until(lambda: self.get(kind, name) is None, PATIENCE, f"{kind} {name} is gone")

    def wait_gone(self, *kinds: str, selector: str) -> None:
        """Waits until a label selector selects no object of the given kinds."""

        def left() -> set[str]:
            return {f"{kind}/{item['metadata']['name']}" for kind in kinds for item in self.list(kind, selector)}

        wait_until(lambda: not left(), PATIENCE, f"all of {selector} are gone ({', '.join(kinds)})")

    def patch(self, kind: str, name: str, change: Object) -> None:
        """Applies a merge patch to an object."""
        server().patch(kind, self.name, name, change)

    def get(self, kind: str, name: str) -> Object | None:
        """The object, or None."""
        return server().get(kind, self.name, name)

    def list(self, kind: str, selector: str = "", fields: str = "") -> list[Object]:
        """The objects that a label and a field selector select."""
        return server().list(kind, self.name, selector, fields)

    def conditions(self, name: str, kind: str = "ggw") -> dict[str, Object]:
        """A gateway's conditions by type, from one read; empty unless they are of its current generation.

        With the kind `gwt`, a tenant's conditions.
        """
        return conditions_of(self.get(kind, name) or {})

    def condition(self, gateway: str, kind: str) -> Object:
        """A condition of a gateway; empty if it does not exist for the current generation."""
        return self.conditions(gateway).get(kind, {})

    def is_ready(self, gateway: str, replicas: int | None = None) -> bool:
        """Whether a gateway is Ready for its current generation, with `replicas` ready workers if given."""
        found = self.get("ggw", gateway) or {}
        ready = found.get("status", {}).get("readyReplicas")
        return replicas in (None, ready) and conditions_of(found).get("Ready", {}).get("status") == "True"

    def wait_ready(self, kind: str, name: str) -> None:
        """Waits until a pod, or every pod of a Deployment or StatefulSet, is ready with its newest spec."""
        wait_until(lambda: _is_available(self.get(kind, name) or {}), PATIENCE, f"{kind} {name} is ready")

    def service_address(self, name: str) -> str:
        """The address of a Service inside the cluster."""
        service = self.get("service", name)
        if not service:
            raise LookupError(f"there is no Service {name}")
        address: str = service["spec"]["clusterIP"]
        return address

    def logs(self, selector: str) -> str:
        return self.kubectl("logs", "--selector", selector, "--tail", "-1", "--all-containers")

    @contextmanager
    def forwarded(self, target: str, port: int) -> Iterator[str]:
        """An address on this machine that leads to `target`, such as `service/demo`."""
        command = ("kubectl", "--namespace", self.name)
        with tempfile.TemporaryDirectory(prefix="proofgate-port-forward-") as folder:

            def start() -> Program:
                arguments = ("port-forward", target, f":{port}")
                return Program.start("port-forward", Path(folder), arguments, command, env=environment())

            def address(program: Program) -> str:
                return program.wait_for_line(r"127\.0\.0\.1:\d+")[0]

            program, found = start_ready(start, address)
            try:
                yield found
            finally:
                program.stop()


def conditions_of(found: Object) -> dict[str, Object]:
    """The conditions of a gateway or tenant by type, if they are of its current generation."""
    generation = found.get("metadata", {}).get("generation")
    conditions = found.get("status", {}).get("conditions", [])
    return {item["type"]: item for item in conditions if item.get("observedGeneration") == generation}


def _is_available(found: Object) -> bool:
    """Whether a pod is Ready, or a Deployment or StatefulSet has all its wanted pods ready with its newest spec."""
    status = found.get("status", {})
    if "replicas" not in found.get("spec", {}):
        return {"type": "Ready", "status": "True"}.items() <= _ready_condition(status).items()
    wanted = found["spec"]["replicas"]
    counts = (status.get("updatedReplicas"), status.get("readyReplicas"), status.get("replicas"))
    return status.get("observedGeneration") == found["metadata"]["generation"] and counts == (wanted,) * 3


def _ready_condition(status: Object) -> Object:
    return next((item for item in status.get("conditions", []) if item["type"] == "Ready"), {})


OPERATOR = Namespace("proofgate-system")
#: The images that `make images` loaded into the nodes.
IMAGES = {
    "operator.image": "localhost/proofgate/operator:dev",
    "workerImage": "localhost/proofgate/worker:dev",
    "haproxyImage": "localhost/proofgate/haproxy:bookworm",
}


#: The label of every namespace that the end-to-end tests make.
MADE_BY_TESTS = {"proofgate.dev/made-by": "e2e-tests"}


def namespaces_of_tests() -> list[Namespace]:
    """The namespaces that a run of the end-to-end tests made."""
    selector = ",".join(f"{name}={value}" for name, value in MADE_BY_TESTS.items())
    return [Namespace(item["metadata"]["name"]) for item in server().list("namespaces", None, selector)]


def clear(*others: Namespace) -> None:
    """Removes the remains of earlier runs in the tests' and the given namespaces. Gateways are deleted first, while an
    operator can still handle their deletion.
    """
    namespaces = [namespace for namespace in others if namespace.exists()] + namespaces_of_tests()
    for namespace in namespaces:
        namespace.delete_gateways(wait=False)
    for namespace in namespaces:
        namespace.delete_gateways()
    if OPERATOR.exists():
        run(["helm", "uninstall", "proofgate", "--namespace", OPERATOR.name, "--ignore-not-found", "--wait"])
        namespaces.append(OPERATOR)
    for namespace in namespaces:
        namespace.remove(wait=False)
    for namespace in namespaces:
        namespace.remove()


def install_operator(watched: list[str], values: Mapping[str, Any] | None = None, into: Namespace = OPERATOR) -> None:
    """Installs the operator from the chart, for some namespaces, and waits until it runs; `values` are the chart's.

    If it watches none, it serves the one that it is installed `into`.
    """
    command = ["helm", "upgrade", "--install", "proofgate", str(CHART), "--namespace", into.name]
    for name, value in {**IMAGES, **(values or {}), "watchNamespaces": watched}.items():
        command += ["--set-json", f"{name}={json.dumps(value)}"]
    command += ["--wait", "--timeout", f"{PATIENCE}s"]
    try:
        run(command)
    except CommandError as error:
        told = into.kubectl("logs", "--selector", "app.kubernetes.io/instance=proofgate", "--tail", "40")
        raise CommandError(command, f"{error.stderr}\nthe operator printed:\n{told}") from error


def ledger_directory(namespace: Namespace, gateway: str) -> Path:
    """The path on this machine of the volume that a gateway's workers share, in the local cluster."""
    return volume_directory(namespace, f"{gateway}-wal")


def volume_directory(namespace: Namespace, claim: str) -> Path:
    """The path on this machine of the volume of a claim, in the local cluster."""
    found = namespace.get("persistentvolumeclaim", claim)
    if not found:
        raise LookupError(f"there is no claim {claim}")
    volume = server().get("persistentvolume", None, found["spec"]["volumeName"])
    if not volume:
        raise LookupError(f"there is no volume {found['spec']['volumeName']}")
    return Path(volume["spec"]["hostPath"]["path"])


def remove_volume(name: str) -> None:
    """Deletes a PersistentVolume, if it exists, and waits until it is gone."""
    server().delete("pv", None, name)
    wait_until(lambda: server().get("pv", None, name) is None, PATIENCE, f"volume {name} is gone")
