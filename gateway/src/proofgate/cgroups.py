"""The CPUs that this process may use, how often the kernel throttled it, and the other limits of its group.

They are read from the files of the control group, version 1 or 2 (cgroups(7); the kernel's documents
sched-bwc and cgroup-v2). A container sees its own group as the root of the mount, with or without a separate
namespace.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

_PROCESS = Path("/proc/self")
# Mount points with spaces are written with octal escapes. No container runtime uses such mount points.
_MOUNT = re.compile(
    r"^\d+ \d+ \S+ (?P<root>\S+) (?P<point>\S+) .* - (?P<type>cgroup2?) \S+ (?P<options>\S+)$", re.MULTILINE
)


@dataclass(frozen=True)
class CpuQuota:
    """The CPU quota of a process; None where the kernel does not report one."""

    #: Numbers of the CPUs on which the process may run.
    effective: tuple[int, ...]
    #: CPU cores that the process may use in each period; None also if there is no limit.
    limit: float | None
    #: Number of ended periods in which the process was runnable.
    periods: int | None
    #: Number of these periods in which the process was throttled.
    throttled: int | None

    def as_json(self) -> dict[str, Any]:
        """Returns the JSON form for the admin port."""
        return {
            "effective_cpus": list(self.effective),
            "cpu_limit": self.limit,
            "cpu_periods": self.periods,
            "cpu_periods_throttled": self.throttled,
        }


def read_cpu_quota(process: Path = _PROCESS, root: Path = Path("/")) -> CpuQuota:
    """Reads the current quota. `process` is the process's folder in proc(5); `root` is the folder of mount
    points."""
    effective = _cpu_list(_field(_text(process / "status"), "Cpus_allowed_list:"))
    if not effective:
        effective = tuple(sorted(os.sched_getaffinity(0)))
    folder, version = _group(process, root)
    if folder is None:
        return CpuQuota(effective, None, None, None)
    if version == 2:
        quota, period = (*_text(folder / "cpu.max").split(), "", "")[:2]
    else:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    stat = _text(folder / "cpu.stat")
    return CpuQuota(
        effective,
        _limit(quota, period),
        _count(_field(stat, "nr_periods")),
        _count(_field(stat, "nr_throttled")),
    )


#: Files with the limit and the usage of a controller, in cgroups version 2 and version 1.
_BOUND_FILES = {
    "memory": {2: ("memory.max", "memory.current"), 1: ("memory.limit_in_bytes", "memory.usage_in_bytes")},
    "pids": {2: ("pids.max", "pids.current"), 1: ("pids.max", "pids.current")},
}


def read_limit_or_usage(
    controller: str, process: Path = _PROCESS, root: Path = Path("/"), *, now: bool = False
) -> int | None:
    """Returns the limit of the process's group for `memory` (bytes) or `pids`, or its usage with `now`. None
    if there is no limit, or if the kernel does not report one."""
    folder, version = _group(process, root, controller)
    return _count(_text(folder / _BOUND_FILES[controller][version][now])) if folder is not None else None


def _group(process: Path, root: Path, controller: str = "cpu") -> tuple[Path | None, int]:
    """The folder of the process's group with a controller, and the cgroups version of its files."""
    paths: dict[str, str] = {}
    for line in _text(process / "cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        paths |= dict.fromkeys(controllers.split(","), path)
    mounts = [match.groupdict() for match in _MOUNT.finditer(_text(process / "mountinfo"))]
    first = [
        mount for mount in mounts if mount["type"] == "cgroup" and controller in mount["options"].split(",")
    ]
    for mount in first or [mount for mount in mounts if mount["type"] == "cgroup2"]:
        version = 2 if mount["type"] == "cgroup2" else 1
        path = paths.get("" if version == 2 else controller, "/")
        point = root / mount["point"].lstrip("/")
        inside = PurePosixPath(path)
        if inside.is_relative_to(mount["root"]):
            folder = point / inside.relative_to(mount["root"])
            if folder.is_dir():
                return folder, version
        if point.is_dir():
            return point, version
    return None, 0


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _field(text: str, name: str) -> str:
    """The word after `name` at the start of a line."""
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == name:
            return words[1]
    return ""


def _count(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() else None


def _limit(quota: str, period: str) -> float | None:
    """The limit in CPU cores; None for a quota of `max` or -1."""
    time, of = _count(quota), _count(period)
    return time / of if time is not None and of else None


def _cpu_list(text: str) -> tuple[int, ...]:
    """The numbers in a list like `0-1,4` (cpuset(7))."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        begin, end = _count(first), _count(last or first)
        if begin is None or end is None:
            return ()
        cpus += range(begin, end + 1)
    return tuple(cpus)
