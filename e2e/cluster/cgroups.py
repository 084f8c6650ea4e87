"""The lab's cgroups: one subtree, in every hierarchy, that the kernel keeps as the list of what the lab runs.

- `control-plane`: etcd, apiserver, controller manager, scheduler, forwarder
- `lab-N-daemons`: containerd with its shims, kubelet, kube-proxy
- `lab-N`: the kubelet's cgroupRoot, which is the pods
- `builds`: image builds, which outlive their command if that is killed
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from .layout import LAB, NODES

MOUNT = Path("/sys/fs/cgroup")
CONTROL_PLANE_GROUP = f"/{LAB}/control-plane"
BUILDS_GROUP = f"/{LAB}/builds"
_V2_CONTROLLERS = ("cpu", "cpuset", "memory", "pids", "io", "hugetlb")


def daemons_group(node_name: str) -> str:
    return f"/{LAB}/{node_name}-daemons"


def create() -> None:
    """Make the subtree. The kubelet does not make its own root, and refuses to start without it."""
    groups = [f"/{LAB}", CONTROL_PLANE_GROUP, BUILDS_GROUP]
    for node in NODES:
        groups += [node.cgroup, daemons_group(node.name)]
    for hierarchy in hierarchies():
        for group in groups:
            folder = _within(hierarchy, group)
            folder.mkdir(exist_ok=True)
            if (hierarchy / "cpuset.cpus").exists() and not _unified(hierarchy):
                # A new v1 cpuset is empty, and a process cannot join an empty one.
                for name in ("cpuset.cpus", "cpuset.mems"):
                    (folder / name).write_text((folder.parent / name).read_text())
            if group == f"/{LAB}":
                _weigh(folder)
            if _unified(hierarchy) and group in {f"/{LAB}", *(node.cgroup for node in NODES)}:
                _delegate(folder)


def remove(timeout: float = 120.0) -> None:
    """Remove the subtree, deepest folders first; the kernel may need a moment after the last process has ended."""
    deadline = time.monotonic() + timeout
    while left := remaining():
        for folder in left:
            for path, _, _ in os.walk(folder, topdown=False):
                with suppress(OSError):
                    Path(path).rmdir()
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def remaining() -> list[Path]:
    """The lab's top folder in each hierarchy that still has it."""
    return [folder for hierarchy in hierarchies() if (folder := _within(hierarchy, f"/{LAB}")).exists()]


def members(group: str) -> list[int]:
    """Every process in a group and below, in whichever hierarchy it is."""
    pids: set[int] = set()
    for hierarchy in hierarchies():
        for path, _, files in os.walk(_within(hierarchy, group)):
            if "cgroup.procs" in files:
                try:
                    pids.update(int(word) for word in Path(path, "cgroup.procs").read_text().split())
                except OSError:
                    continue
    return sorted(pids - {0})


def joining_file(group: str) -> str:
    """The file that a process writes its pid to in order to join a group of daemons.

    On v1 one hierarchy is enough, and `pids` is the one that changes nothing else for its members.
    """
    roots = hierarchies()
    chosen = next((root for root in roots if root.name == "pids"), roots[0])
    return str(_within(chosen, group) / "cgroup.procs")


_leave_lab = threading.Event()


def build_outside() -> None:
    """Image builds of this process are not the lab's from now on, and so do not end with it."""
    _leave_lab.set()


def builds_group() -> str | None:
    """The group of image builds; None while no lab is up, and for builds outside of it."""
    if _leave_lab.is_set():
        return None
    return BUILDS_GROUP if os.path.exists(joining_file(BUILDS_GROUP)) else None


def hierarchies() -> list[Path]:
    """All mounted hierarchies: one on v2; on v1 each controller's, and the unified one if it has controllers."""
    if _unified(MOUNT):
        return [MOUNT]
    found = []
    for folder in sorted(MOUNT.iterdir()):
        if folder.is_symlink() or not (folder / "cgroup.procs").exists():
            continue
        if _unified(folder) and not (folder / "cgroup.controllers").read_text().strip():
            continue
        found.append(folder)
    return found


def _unified(hierarchy: Path) -> bool:
    return (hierarchy / "cgroup.controllers").exists()


def _delegate(folder: Path) -> None:
    for where in (folder.parent, folder):
        offered = (where / "cgroup.controllers").read_text().split()
        wanted = [name for name in _V2_CONTROLLERS if name in offered]
        (where / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))


def _weigh(folder: Path) -> None:
    """Let all pods together have more than one process of the machine has, which is what a new group gets."""
    for name, weight in (("cpu.shares", 8 * 1024), ("cpu.weight", 8 * 100)):
        if (folder / name).exists():
            (folder / name).write_text(str(weight))


def _within(hierarchy: Path, group: str) -> Path:
    return hierarchy / group.lstrip("/")
