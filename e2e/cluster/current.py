"""The route to an existing cluster: used only if it is requested by name, and never changed."""

from __future__ import annotations

import os
from pathlib import Path

from .console import LabError, say
from .processes import run

_OURS = "this cluster is not the lab's to change"


def up() -> None:
    """Only check that the current context answers."""
    run(["kubectl", "get", "--raw=/readyz", "--request-timeout=10s"], timeout=20)
    say(f"using the current context: {run(['kubectl', 'config', 'current-context']).stdout.strip()}")


def down() -> None:
    say("left alone: the current context")


def healthy() -> bool:
    return run(["kubectl", "get", "--raw=/readyz", "--request-timeout=10s"], timeout=20, check=False).returncode == 0


def status() -> list[str]:
    return run(["kubectl", "get", "nodes"], timeout=30).stdout.splitlines()


def load_image(name: str) -> None:
    raise LabError(f"{_OURS}: {name} is not loaded", "build it and push it to a registry that the cluster pulls from")


def tag_image(name: str, second: str) -> None:
    raise LabError(f"{_OURS}: {name} does not become {second}", "give it that name in your registry")


def build_image(name: str, *_inputs: object) -> None:
    load_image(name)


def node_stop(number: int, **_how: object) -> None:
    raise LabError(f"{_OURS}: node {number} stays", "node loss needs CLUSTER=local or CLUSTER=kind")


def node_start(number: int) -> None:
    raise LabError(f"{_OURS}: node {number} was not stopped", "node loss needs CLUSTER=local or CLUSTER=kind")


def recycle_volumes() -> int:
    return 0


def kubeconfig() -> Path:
    """The kubeconfig that kubectl itself would read first."""
    chosen = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(chosen) if chosen else Path.home() / ".kube" / "config"
