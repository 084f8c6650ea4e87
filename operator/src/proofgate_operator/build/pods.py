"""What the pods of a gateway have in common: the restricted PodSecurity profile and where they may run."""

from typing import Any

from proofgate_operator.api.gateway import Gateway, LogFormat
from proofgate_operator.build.naming import USER_ID, Defaults, Manifest


def pod_security(defaults: Defaults) -> Manifest:
    """Return the pod's part of the restricted profile."""
    ids = {"runAsUser": USER_ID, "runAsGroup": USER_ID, "fsGroup": USER_ID}
    return {
        "runAsNonRoot": True,
        **({} if defaults.platform_ids else ids),
        # Walking a large ledger to change its group at every start would delay the worker.
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def pull_secrets(defaults: Defaults) -> Manifest:
    """Return the part of a pod's spec that names the Secrets for pulling images, if there are any."""
    found = [{"name": name} for name in defaults.image_pull_secrets]
    return {"imagePullSecrets": found} if found else {}


def container_security() -> Manifest:
    """Return a container's part of the restricted profile."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def log_environment(gateway: Gateway) -> list[Manifest]:
    """Return the environment by which a container logs in the gateway's format; nothing for text."""
    wanted = gateway.spec.log_format
    return [] if wanted is LogFormat.TEXT else [{"name": "PROOFGATE_LOG_FORMAT", "value": wanted.value}]


def topology_spread(match_labels: dict[str, str]) -> list[Manifest]:
    """Spread pods over nodes and zones as far as there are any."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": match_labels},
        }
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]


def http_probe(path: str, port: str, **timing: int) -> dict[str, Any]:
    """Return an HTTP probe; `timing` takes the probe's own field names, in seconds or counts."""
    return {"httpGet": {"path": path, "port": port}, **timing}


def wait_for_handler(process: int = 1) -> str:
    """Return a shell command that ends once a process of Python has a handler for SIGTERM, or is gone.

    The first process of a container ignores SIGTERM until then (pid_namespaces(7)), and the kubelet sends it
    once: a pod that was stopped while it started would be there for all of its grace.
    """
    # A mask in hexadecimal (proc_pid_status(5)); SIGTERM, 15, is the third bit of the fourth digit.
    caught = f"grep -q '^SigCgt:.*[4-7c-f]...$' /proc/{process}/status 2>/dev/null"
    return f"until {caught} || ! kill -0 {process} 2>/dev/null; do sleep 0.2; done"


def graceful_stop_lifecycle() -> Manifest:
    """Return the lifecycle of a container of Python: SIGTERM reaches it also while it starts."""
    return {"preStop": {"exec": {"command": ["/bin/sh", "-c", wait_for_handler()]}}}
