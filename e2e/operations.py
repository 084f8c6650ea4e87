"""Operations and failures of a gateway, each as one call that returns when it is done."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.kubernetes import (
    IMAGES,
    OPERATOR,
    PATIENCE,
    CommandError,
    Namespace,
    Object,
    conditions_of,
    install_operator,
    lab,
    run,
    server,
    wait_until,
)


@dataclass(frozen=True)
class Gateway:
    """A gateway on the cluster."""

    namespace: Namespace
    name: str

    def pods(self, component: str) -> list[Object]:
        """The gateway's pods of one component that are not being deleted."""
        selector = f"app.kubernetes.io/component={component},proofgate.dev/gateway={self.name}"
        found = self.namespace.list("pods", selector)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def uids(self, component: str) -> dict[str, str]:
        """The uid of each pod by its name."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods(component)}

    def settled(self, replicas: int | None = None) -> bool:
        """Whether it is Ready, its spec is fully applied, and no pod is starting or ending."""
        found = self.namespace.get("ggw", self.name) or {}
        told = conditions_of(found)
        done = told.get("Progressing", {}).get("reason") == "Settled" and told["Ready"]["status"] == "True"
        seen = found.get("status", {}).get("observedGeneration") == found.get("metadata", {}).get("generation")
        return done and seen and replicas in (None, found["status"].get("readyReplicas"))

    def wait_settled(self, replicas: int | None = None) -> None:
        """Waits until it is settled."""
        wait_until(lambda: self.settled(replicas), PATIENCE, f"gateway {self.name} is settled")

    def scale(self, replicas: int) -> None:
        """Runs kubectl scale, and waits until the gateway is settled."""
        self.namespace.kubectl("scale", f"ggw/{self.name}", f"--replicas={replicas}")
        self.wait_settled(replicas)
        wait_until(lambda: len(self.pods("worker")) == replicas, PATIENCE, f"there are {replicas} workers")

    def patch(self, spec: dict[str, Any]) -> None:
        """Applies a merge patch to its spec."""
        self.namespace.patch("ggw", self.name, {"spec": spec})

    def delete(self) -> None:
        """Deletes the gateway and returns when none of its pods is left."""
        self.namespace.delete("ggw", self.name)
        self.namespace.wait_gone("pod", selector=self.selector)

    def forget(self) -> None:
        """Deletes the objects that remain after a gateway whose evidence is retained."""
        for kind in ("persistentvolumeclaim", "configmap", "secret"):
            for found in self.namespace.list(kind, self.selector):
                self.namespace.delete(kind, found["metadata"]["name"])

    @property
    def selector(self) -> str:
        """The label selector of all its objects."""
        return f"proofgate.dev/gateway={self.name}"

    def roll(self, component: str, change: Callable[[], None]) -> None:
        """Makes a change that replaces every pod of a component, and waits until all are replaced."""
        before = set(self.uids(component).values())
        change()

        def is_done() -> bool:
            # The pods are listed first, because a status that is read earlier may be older than the change.
            now = set(self.uids(component).values())
            return len(now) == len(before) and not before & now and self.settled()

        wait_until(is_done, PATIENCE, f"every {component} of {self.name} is replaced")

    def encrypt_inside(self, wanted: bool) -> None:
        """Switches HAProxy's connections to the workers to TLS or clear text, and waits until all have switched."""
        self.patch({"internalTLS": {"mode": "Operator" if wanted else "None"}})

        def is_done() -> bool:
            volumes = [
                {volume["name"] for volume in pod["spec"]["volumes"]}
                for component in ("worker", "load-balancer")
                for pod in self.pods(component)
            ]
            lines = (self.namespace.get("configmap", f"{self.name}-config") or {})["data"]["gateway.yaml"].splitlines()
            facts = {"tls:" in lines, "  acceptPlain: false" in lines, *("internal-tls" in names for names in volumes)}
            return facts == {wanted} and self.settled()

        wait_until(is_done, PATIENCE, f"inside {self.name} is {'TLS' if wanted else 'clear text'} alone")

    def kill(self, pod: str, program: bytes) -> None:
        """Sends SIGKILL to the process of a pod whose command line contains `program`."""
        os.kill(process_in(self.namespace, pod, program), signal.SIGKILL)

    def restarts(self, pod: str) -> int:
        """The number of container restarts of a pod."""
        found = self.namespace.get("pod", pod) or {}
        return sum(one["restartCount"] for one in found.get("status", {}).get("containerStatuses", []))

    def said(self, pod: str) -> str:
        """The log of a pod's container, and the log of the previous one."""
        text = ""
        for options in ((), ("--previous",)):
            try:
                text += self.namespace.kubectl("logs", pod, *options)
            except CommandError:
                continue
        return text


def process_in(namespace: Namespace, pod: str, program: bytes) -> int:
    """The process id, on this machine, of a pod's process whose command line contains `program`."""
    found = namespace.get("pod", pod) or {}
    statuses = found.get("status", {}).get("containerStatuses", [])
    containers = [status["containerID"].partition("//")[2] for status in statuses]
    for process, group in pods_on_this_machine().items():
        if any(container in group for container in containers):
            try:
                line = Path(f"/proc/{process}/cmdline").read_bytes()
            except OSError:
                continue
            if program in line:
                return process
    raise LookupError(f"no {program.decode()} in {pod}")


def pods_on_this_machine(folder: Path = Path("/proc")) -> dict[int, str]:
    """Every process of this machine that runs in a pod, with its control group."""
    found = {}
    for entry in folder.iterdir():
        if entry.name.isdigit():
            try:
                group = (entry / "cgroup").read_text()
            except OSError:
                continue
            if "/pod" in group:
                found[int(entry.name)] = group
    return found


def drain(node: str, gateway: Gateway) -> None:
    """Runs kubectl drain on a node, only for pods of gateways with that name. The node stays cordoned."""
    command = ["kubectl", "drain", node, f"--pod-selector=proofgate.dev/gateway={gateway.name}"]
    run([*command, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=600s"], timeout=660)


def uncordon(node: str) -> None:
    """Runs kubectl uncordon."""
    run(["kubectl", "uncordon", node])


@contextmanager
def standing(node: str) -> Iterator[None]:
    """Stops every process of a node during the block, like those of a virtual machine that is migrated."""
    number = node.rpartition("-")[2]
    lab("node-pause", number)
    try:
        yield
    finally:
        lab("node-resume", number)


def node_of(pod: Object) -> str:
    """The node that a pod runs on."""
    name: str = pod["spec"]["nodeName"]
    return name


def rotate_key(gateway: Gateway, secret: str, entry: str, key: str) -> None:
    """Replaces the key in an entry of a tenant's Secret."""
    gateway.namespace.patch("secret", secret, {"data": {entry: base64.b64encode(key.encode()).decode()}})


_OPERATORS = "app.kubernetes.io/instance=proofgate"


def restart_operator() -> None:
    """Replaces every pod of the operator, as an upgrade of its chart does."""
    OPERATOR.kubectl("rollout", "restart", "deployment", "--selector", _OPERATORS)
    for deployment in OPERATOR.list("deployments", _OPERATORS):
        OPERATOR.wait_ready("deployment", deployment["metadata"]["name"])


def kill_operator() -> None:
    """Deletes every pod of the operator without grace."""
    for pod in OPERATOR.list("pods", _OPERATORS):
        server().delete("pod", OPERATOR.name, pod["metadata"]["name"], grace=0)


def upgrade_operator(watched: list[str], **values: str | bool) -> None:
    """Runs helm upgrade with some values changed."""
    install_operator(watched, values)


def second_worker_image() -> str:
    """Adds the workers' image under a second name on every node, which Kubernetes treats as an upgrade."""
    name = "localhost/proofgate/worker:next"
    lab("tag-image", IMAGES["workerImage"], name)
    return name
