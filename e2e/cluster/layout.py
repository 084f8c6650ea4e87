"""The paths of the lab's files, and the names and addresses that it uses.

Files that take long to create (binaries, base image) are in the cache and survive `down`. Files of one running lab are
in the lab folder, which `down` deletes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
REPOSITORY = PACKAGE.parent.parent

LAB = "proofgate-lab"
RUNTIME = Path("/run") / LAB
SERVICE_RANGE = "198.19.0.0/16"
FIRST_SERVICE = "198.19.0.1"
DNS_SERVICE = "198.19.0.10"
POD_RANGE = "198.18.0.0/16"
CLUSTER_DOMAIN = "cluster.local"


@dataclass(frozen=True)
class Node:
    """One node of the local cluster: a network namespace with its own containerd, kubelet and kube-proxy."""

    number: int

    @property
    def name(self) -> str:
        return f"lab-{self.number}"

    @property
    def namespace(self) -> str:
        return f"{LAB}-{self.number}"

    @property
    def address(self) -> str:
        return f"192.0.2.{9 + self.number}"

    @property
    def pod_range(self) -> str:
        return f"198.18.{self.number - 1}.0/24"

    @property
    def link(self) -> str:
        """The node's end of the veth pair that connects both nodes."""
        return f"pglab{self.number}"

    @property
    def cgroup(self) -> str:
        return f"/{LAB}/{self.name}"

    @property
    def folder(self) -> Path:
        return lab_folder() / self.name

    @property
    def sockets(self) -> Path:
        """A short path for sockets: a socket's path is limited to 107 bytes, and the cache's path may be long."""
        return RUNTIME / self.name

    @property
    def containerd_socket(self) -> Path:
        return self.sockets / "containerd.sock"


NODES = (Node(1), Node(2))
CONTROL_PLANE = NODES[0]


def cache_folder() -> Path:
    """The root of all caches: `PROOFGATE_CACHE`, otherwise the user's cache folder."""
    chosen = os.environ.get("PROOFGATE_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base).absolute() / "proofgate"


def lab_folder() -> Path:
    return cache_folder() / "lab"


def log_folder() -> Path:
    """The logs of the current or last run; `down` keeps them, and the next `up` replaces them."""
    return cache_folder() / "lab-logs"


def kubeconfig_path() -> Path:
    return lab_folder() / "kubeconfig"


def volume_folder() -> Path:
    return lab_folder() / "volumes"
