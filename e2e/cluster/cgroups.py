"""The lab's cgroups: one subtree in every hierarchy, so that the kernel lists the lab's processes.

- `control-plane`: etcd, apiserver, controller manager, scheduler, forwarder
- `lab-N-daemons`: containerd with its shims, kubelet, kube-proxy
- `lab-N`: the kubelet's cgroupRoot, which contains the pods
- `builds`: image builds, which survive if their command is killed
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
    """Create the subtree. The kubelet does not create its own root, and does not start without it."""
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
    """Remove the subtree, deepest folders first. After its last process ended, the kernel may still need a moment."""
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
    """The lab's top folder in each hierarchy that still contains it."""
    return [folder for hierarchy in hierarchies() if (folder := _within(hierarchy, f"/{LAB}")).exists()]


def members(group: str) -> list[int]:
    """The processes of a group and its subgroups, in any hierarchy."""
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
    """The file to which a process writes its pid to join a group of daemons.

    On v1 one hierarchy is enough, and joining `pids` changes nothing else for the process.
    """
    roots = hierarchies()
    chosen = next((root for root in roots if root.name == "pids"), roots[0])
    return str(_within(chosen, group) / "cgroup.procs")


_leave_lab = threading.Event()


def build_outside() -> None:
    """Run further image builds of this process outside the lab's cgroups, so that they do not end with the lab."""
    _leave_lab.set()


def builds_group() -> str | None:
    """The group of image builds; None if no lab is up, or if builds run outside the lab's cgroups."""
    if _leave_lab.is_set():
        return None
    return BUILDS_GROUP if os.path.exists(joining_file(BUILDS_GROUP)) else None


def hierarchies() -> list[Path]:
    """All mounted hierarchies: one on v2; on v1 one for each controller, and the unified one if it has controllers."""
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
    """Give all pods together more CPU weight than a new group has, because each process outside the lab has as much."""
    for name, weight in (("cpu.shares", 8 * 1024), ("cpu.weight", 8 * 100)):
        if (folder / name).exists():
            (folder / name).write_text(str(weight))


def _within(hierarchy: Path, group: str) -> Path:
    return hierarchy / group.lstrip("/")
