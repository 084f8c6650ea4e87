"""A worker's report on its CPUs, from files recorded in containers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from proofgate.cgroups import CpuQuota, read_cpu_quota

# Kubernetes 1.36 with containerd, control groups version 2 in a separate namespace, no exclusive core.
SECOND = {
    "self/status": "Name:\tproofgate\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n",
    "self/cgroup": "0::/\n",
    "self/mountinfo": (
        "1530 1521 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n"
    ),
    "root/sys/fs/cgroup/cpu.max": "100000 100000\n",
    "root/sys/fs/cgroup/cpu.stat": (
        "usage_usec 5201733\nuser_usec 4013219\nsystem_usec 1188514\n"
        "nr_periods 411\nnr_throttled 37\nthrottled_usec 1530118\n"
    ),
}
# The same with the CPU manager's static policy: one exclusive core, no quota.
EXCLUSIVE = SECOND | {
    "self/status": "Name:\tproofgate\nCpus_allowed_list:\t2\n",
    "root/sys/fs/cgroup/cpu.max": "max 100000\n",
    "root/sys/fs/cgroup/cpu.stat": "usage_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
}
# Version 1 without a separate namespace: the group is mounted under its full path.
POD = "/kubepods/pod5f0e/8c1a"
FIRST = {
    "self/status": "Name:\tproofgate\nCpus_allowed_list:\t0-1,4\n",
    "self/cgroup": f"11:cpu,cpuacct:{POD}\n3:cpuset:{POD}\n0::/system.slice/containerd.service\n",
    "self/mountinfo": (
        f"902 899 0:31 {POD} /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
        f"903 899 0:33 {POD} /sys/fs/cgroup/cpuset ro,nosuid - cgroup cgroup rw,cpuset\n"
        "904 899 0:38 / /sys/fs/cgroup/unified ro,relatime - cgroup2 cgroup2 rw\n"
    ),
    "root/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
    "root/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "root/sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 12\nnr_throttled 3\nthrottled_time 99\n",
    "root/sys/fs/cgroup/unified/cpu.max": "1 1\n",
}
# A process outside a container: its group is below the root of the mount.
NESTED = {
    "self/status": "Cpus_allowed_list:\t0\n",
    "self/cgroup": "0::/user.slice/session.scope\n",
    "self/mountinfo": "31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "root/sys/fs/cgroup/cpu.stat": "nr_periods 1\nnr_throttled 1\n",
    "root/sys/fs/cgroup/user.slice/session.scope/cpu.max": "50000 100000\n",
    "root/sys/fs/cgroup/user.slice/session.scope/cpu.stat": "nr_periods 7\nnr_throttled 0\n",
}


def cpus_of(folder: Path, files: Mapping[str, str]) -> CpuQuota:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_cpu_quota(folder / "self", folder / "root")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (SECOND, CpuQuota((0, 1, 2, 3), 1.0, 411, 37)),
        (EXCLUSIVE, CpuQuota((2,), None, 0, 0)),
        (FIRST, CpuQuota((0, 1, 4), 1.5, 12, 3)),
        (
            FIRST | {"root/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n"},
            CpuQuota((0, 1, 4), None, 12, 3),
        ),
        (NESTED, CpuQuota((0,), 0.5, 7, 0)),
    ],
    ids=["version-2", "version-2-exclusive", "version-1", "version-1-without-limit", "nested"],
)
def test_the_cpus_limit_and_throttling_of_a_group_are_read(
    tmp_path: Path, files: Mapping[str, str], expected: CpuQuota
) -> None:
    assert cpus_of(tmp_path, files) == expected


@pytest.mark.parametrize("missing", sorted(SECOND))
def test_what_the_kernel_does_not_tell_is_unknown_and_no_error(tmp_path: Path, missing: str) -> None:
    files = {name: text for name, text in SECOND.items() if name != missing}
    assert cpus_of(tmp_path, files).effective


@pytest.mark.parametrize("text", ["", "max", "x y", "100000", "100000 0", "٣ 100000"])
def test_a_limit_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    files = SECOND | {"root/sys/fs/cgroup/cpu.max": text, "root/sys/fs/cgroup/cpu.stat": "nr_periods many\n"}
    assert cpus_of(tmp_path, files) == CpuQuota((0, 1, 2, 3), None, None, None)


def test_this_very_process_has_a_cpu() -> None:
    assert read_cpu_quota().effective
