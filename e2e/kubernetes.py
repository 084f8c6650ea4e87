"""kubectl and helm as the demonstration and the tests use them: real commands, JSON in and out."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

REPOSITORY = Path(__file__).resolve().parents[1]
CHART = REPOSITORY / "charts" / "proofgate-operator"
Object = dict[str, Any]
T = TypeVar("T")


class CommandError(RuntimeError):
    """A command that failed; `stderr` is what it said."""

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


def run(command: list[str], stdin: str | None = None, timeout: float = 120) -> str:
    """Runs a command in the cluster's environment and returns what it printed. Raises CommandError."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=timeout, env=environment(), cwd=REPOSITORY
    )
    if done.returncode:
        raise CommandError(command, done.stderr + done.stdout)
    return done.stdout


def inside(*command: str, timeout: float = 300) -> str:
    """Runs a command of this machine in the network of the cluster's first node, where Services can be reached."""
    return run([sys.executable, "-m", "e2e.cluster", "inside", "--", *command], timeout=timeout)


def wait_until(condition: Callable[[], T], seconds: float, what: str, every: float = 0.25) -> T:
    """Polls until `condition` returns something true, and returns that. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain until {what}")
        time.sleep(every)


@dataclass(frozen=True)
class Namespace:
    """One namespace, by name."""

    name: str

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
        return run(["kubectl", "--namespace", self.name, *arguments], stdin, timeout)

    def create(self, **labels: str) -> None:
        """Creates the namespace, with the strictest PodSecurity level enforced."""
        strict = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
        metadata = {"name": self.name, "labels": {**strict, **labels}}
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        run(["kubectl", "apply", "-f", "-"], json.dumps(manifest))

    def exists(self) -> bool:
        return bool(run(["kubectl", "get", "namespace", self.name, "--ignore-not-found", "--output", "name"]))

    def delete_gateways(self) -> None:
        """Deletes all gateways and sees their pods go, whether an operator is there or not."""
        if "governancegateways" not in run(["kubectl", "api-resources", "--api-group=proofgate.dev"]):
            return
        self.kubectl("delete", "ggw", "--all", "--timeout=60s")
        # The namespace controller waits for half of the grace period of any pod that is still there: five minutes.
        wait_until(lambda: not self.list("pod", "proofgate.dev/gateway"), 120, "the pods of its gateways are gone")

    def delete(self, seconds: float = 360) -> None:
        run(["kubectl", "delete", "namespace", self.name, "--ignore-not-found"], timeout=seconds)

    def apply(self, *manifests: Object) -> str:
        return self.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(manifest) for manifest in manifests))

    def get(self, kind: str, name: str) -> Object | None:
        """The object, or None."""
        output = self.kubectl("get", kind, name, "--ignore-not-found", "--output", "json")
        found: Object | None = json.loads(output) if output.strip() else None
        return found

    def list(self, kind: str, selector: str = "") -> list[Object]:
        output = self.kubectl("get", kind, "--selector", selector, "--output", "json")
        items: list[Object] = json.loads(output)["items"]
        return items

    def conditions(self, name: str, kind: str = "ggw") -> dict[str, Object]:
        """A gateway's conditions by their types, all read at once; none before they are of its current generation.

        Of a tenant likewise, with `gwt` as its kind.
        """
        found = self.get(kind, name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        generation = found.get("metadata", {}).get("generation")
        return {item["type"]: item for item in conditions if item.get("observedGeneration") == generation}

    def condition(self, gateway: str, kind: str) -> Object:
        """A condition of a gateway; empty before it is there for the current generation."""
        return self.conditions(gateway).get(kind, {})

    def is_ready(self, gateway: str, replicas: int | None = None) -> bool:
        """Whether a gateway is Ready for its current generation, with `replicas` ready workers if given."""
        ready = (self.get("ggw", gateway) or {}).get("status", {}).get("readyReplicas")
        return replicas in (None, ready) and self.condition(gateway, "Ready").get("status") == "True"

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
        command = ["kubectl", "--namespace", self.name, "port-forward", target, f":{port}"]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment(),
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.search(r"127\.0\.0\.1:\d+", line)
            if not match:
                raise RuntimeError(f"{shlex.join(command)} printed {line!r}")
            yield match[0]
        finally:
            process.terminate()
            process.wait(10)
            assert process.stdout is not None
            process.stdout.close()


OPERATOR = Namespace("proofgate-system")
#: What `make images` brought into the nodes.
IMAGES = {
    "operator.image": "localhost/proofgate/operator:dev",
    "workerImage": "localhost/proofgate/worker:dev",
    "haproxyImage": "localhost/proofgate/haproxy:bookworm",
}


def clear(*others: Namespace) -> None:
    """Removes what an earlier run left: gateways first, while an operator is there to take leave of them."""
    for namespace in others:
        if namespace.exists():
            namespace.delete_gateways()
            namespace.delete()
    if OPERATOR.exists():
        run(["helm", "uninstall", "proofgate", "--namespace", OPERATOR.name, "--ignore-not-found", "--wait"])
        OPERATOR.delete()


def install_operator(
    watched: list[str], values: Mapping[str, str | bool] | None = None, into: Namespace = OPERATOR
) -> None:
    """Installs the operator from the chart, for some namespaces, and waits until it runs; `values` are the chart's.

    If it watches none, it serves the one that it is installed `into`.
    """
    command = ["helm", "upgrade", "--install", "proofgate", str(CHART), "--namespace", into.name]
    for name, value in {**IMAGES, **(values or {}), "watchNamespaces": watched}.items():
        command += ["--set-json", f"{name}={json.dumps(value)}"]
    command += ["--wait", "--timeout", "90s"]
    try:
        run(command, timeout=120)
    except CommandError as error:
        told = into.kubectl("logs", "--selector", "app.kubernetes.io/instance=proofgate", "--tail", "40")
        raise CommandError(command, f"{error.stderr}\nthe operator printed:\n{told}") from error


def ledger_directory(namespace: Namespace, gateway: str) -> Path:
    """Where on this machine the volume that a gateway's workers share is, in the local cluster."""
    return volume_directory(namespace, f"{gateway}-wal")


def volume_directory(namespace: Namespace, claim: str) -> Path:
    """Where on this machine the volume of a claim is, in the local cluster."""
    found = namespace.get("persistentvolumeclaim", claim)
    if not found:
        raise LookupError(f"there is no claim {claim}")
    volume = json.loads(run(["kubectl", "get", "persistentvolume", found["spec"]["volumeName"], "--output", "json"]))
    return Path(volume["spec"]["hostPath"]["path"])
