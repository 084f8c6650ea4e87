"""Access to the lab's apiserver through kubectl, the only client that needs no Python environment."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from . import toolchain
from .layout import kubeconfig_path
from .processes import run


def kubectl(*words: str, text_in: str | None = None, timeout: float = 300.0, check: bool = True) -> str:
    """The output of one kubectl call with the lab administrator's rights."""
    return call(*words, text_in=text_in, timeout=timeout, check=check).stdout


def call(
    *words: str, text_in: str | None = None, timeout: float = 300.0, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Like `kubectl`, with the exit code."""
    command = [_program(), f"--kubeconfig={kubeconfig_path()}", *words]
    return run(command, text_in=text_in, timeout=timeout, check=check)


def get(*words: str) -> Any:
    """The parsed answer of `kubectl get … -o json`."""
    return json.loads(kubectl("get", *words, "-o", "json"))


def apply(manifest: str) -> None:
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text_in=manifest)


def ready() -> bool:
    """Whether the apiserver answers that it is ready."""
    if not kubeconfig_path().exists():
        return False
    answer = call("get", "--raw=/readyz", "--request-timeout=30s", check=False)
    return answer.returncode == 0 and answer.stdout.strip() == "ok"


def ready_nodes() -> set[str]:
    """The names of the nodes that are Ready."""
    answer = call("get", "nodes", "-o", "json", "--request-timeout=30s", check=False)
    if answer.returncode != 0:
        return set()
    return {
        node["metadata"]["name"]
        for node in json.loads(answer.stdout)["items"]
        for condition in node.get("status", {}).get("conditions", [])
        if condition["type"] == "Ready" and condition["status"] == "True"
    }


def _program() -> str:
    """The kubectl that was built with the lab; a kind cluster can use the machine's kubectl."""
    built = toolchain.binary("kubectl")
    return str(built) if built.exists() else "kubectl"
