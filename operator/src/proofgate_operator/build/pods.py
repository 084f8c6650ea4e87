"""Common parts of all pods of a gateway: the restricted PodSecurity profile and the topology spread."""

from typing import Any

from proofgate_operator.api.gateway import Gateway, LogFormat
from proofgate_operator.build.naming import USER_ID, Defaults, Manifest


def pod_security(defaults: Defaults) -> Manifest:
    """Return the pod-level part of the restricted profile."""
    ids = {"runAsUser": USER_ID, "runAsGroup": USER_ID, "fsGroup": USER_ID}
    return {
        "runAsNonRoot": True,
        **({} if defaults.platform_ids else ids),
        # Changing the group of all files of a large ledger at every start would delay the worker.
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def pull_secrets(defaults: Defaults) -> Manifest:
    """Return the part of a pod's spec with the Secrets for pulling images; empty if there are none."""
    found = [{"name": name} for name in defaults.image_pull_secrets]
    return {"imagePullSecrets": found} if found else {}


def container_security() -> Manifest:
    """Return the container-level part of the restricted profile."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def log_environment(gateway: Gateway) -> list[Manifest]:
    """Return the environment variables for the gateway's log format; empty for text."""
    wanted = gateway.spec.log_format
    return [] if wanted is LogFormat.TEXT else [{"name": "PROOFGATE_LOG_FORMAT", "value": wanted.value}]


def topology_spread(match_labels: dict[str, str]) -> list[Manifest]:
    """Return constraints that spread pods over nodes and zones if possible."""
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
    """Return an HTTP probe; `timing` has the probe's own field names, in seconds or counts."""
    return {"httpGet": {"path": path, "port": port}, **timing}


def wait_for_handler(process: int = 1) -> str:
    """Return a shell command that ends once a Python process has a handler for SIGTERM, or has ended.

    The first process of a container ignores SIGTERM until then (pid_namespaces(7)), and the kubelet sends it
    only once: a pod that was stopped during its start would wait for its whole grace period.
    """
    # A mask in hexadecimal (proc_pid_status(5)); SIGTERM, 15, is the third bit of the fourth digit.
    caught = f"grep -q '^SigCgt:.*[4-7c-f]...$' /proc/{process}/status 2>/dev/null"
    return f"until {caught} || ! kill -0 {process} 2>/dev/null; do sleep 0.2; done"


def graceful_stop_lifecycle() -> Manifest:
    """Return the lifecycle of a Python container: SIGTERM takes effect even during its start."""
    return {"preStop": {"exec": {"command": ["/bin/sh", "-c", wait_for_handler()]}}}
