"""The system's limits for a worker's process, compared with its configuration."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ConfigDirectory
from test_cgroups import FIRST, POD, SECOND

from proofgate import process_limits
from proofgate.config import load
from proofgate.process_limits import Capacity, read_capacities

# A machine with 20,001 ports and 16 GiB of memory.
MACHINE = {
    "root/proc/sys/net/ipv4/ip_local_port_range": "40000\t60000\n",
    "root/proc/meminfo": "MemTotal:       16777216 kB\nMemFree:        1 kB\n",
}
IN_SECOND = {
    "root/sys/fs/cgroup/memory.max": "671088640\n",
    "root/sys/fs/cgroup/pids.max": "100\n",
    "root/sys/fs/cgroup/pids.current": "31\n",
}
IN_FIRST = {
    "self/cgroup": f"11:cpu,cpuacct:{POD}\n9:memory:{POD}\n8:pids:{POD}\n",
    "self/mountinfo": (
        f"902 899 0:31 {POD} /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory\n"
        f"903 899 0:33 {POD} /sys/fs/cgroup/pids ro,nosuid - cgroup cgroup rw,pids\n"
    ),
    "root/sys/fs/cgroup/memory/memory.limit_in_bytes": "671088640\n",
    "root/sys/fs/cgroup/pids/pids.max": "100\n",
    "root/sys/fs/cgroup/pids/pids.current": "31\n",
}


def capacities(folder: Path, config_directory: ConfigDirectory, files: dict[str, str]) -> dict[str, Capacity]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    config = load(config_directory.file)
    found = read_capacities(config, folder / "self", folder / "root")
    return {capacity.resource: capacity for capacity in found}


@pytest.mark.parametrize("group", [SECOND | IN_SECOND, FIRST | IN_FIRST], ids=["cgroup2", "cgroup1"])
def test_what_bounds_a_container_is_read_of_either_version(
    tmp_path: Path, config_directory: ConfigDirectory, group: dict[str, str]
) -> None:
    files = group | MACHINE | {"self/status": group["self/status"] + "Threads:\t7\n"}
    found = capacities(tmp_path, config_directory, files)
    assert found["memory"].available == 671088640
    assert found["ports"].available == 20001
    threads, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    assert found["threads"].available == (76 if threads == resource.RLIM_INFINITY else min(76, threads))
    assert found["threads"].is_short


def test_analysis_and_stored_bodies_need_memory_as_well(
    tmp_path: Path, config_directory: ConfigDirectory
) -> None:
    files = SECOND | IN_SECOND | MACHINE
    before = capacities(tmp_path, config_directory, files)["memory"].needed
    config_directory.append("analysis: {}\n")
    analysis = load(config_directory.file).settings.analysis
    assert analysis is not None
    with_analysis = capacities(tmp_path, config_directory, files)["memory"].needed
    assert with_analysis == before + analysis.memory
    config_directory.replace("ledger:\n", "ledger:\n  payloads: {budgetBytes: 33554432}\n")
    assert capacities(tmp_path, config_directory, files)["memory"].needed == with_analysis + 33554432


def test_without_a_bound_the_machine_is_the_bound_of_memory_alone(
    tmp_path: Path, config_directory: ConfigDirectory
) -> None:
    files = (
        SECOND | MACHINE | {"root/sys/fs/cgroup/memory.max": "max\n", "root/sys/fs/cgroup/pids.max": "max\n"}
    )
    found = capacities(tmp_path, config_directory, files)
    assert found["memory"].available == 16 << 30
    assert not any(found[name].is_short for name in ("memory", "ports"))


def test_a_system_that_says_nothing_is_no_shortfall(
    tmp_path: Path, config_directory: ConfigDirectory
) -> None:
    found = capacities(tmp_path, config_directory, {"self/status": "\n"})
    assert (found["memory"].available, found["ports"].available) == (None, None)
    assert not found["memory"].is_short


def test_a_shortfall_is_told_with_its_figures_and_what_to_do() -> None:
    short = Capacity("descriptors", 8512, 1024)
    assert short.is_short
    assert "8512 needed, 1024 available; raise RLIMIT_NOFILE" in short.describe()
    lines = process_limits.metrics_of((short, Capacity("ports", 4096, None))).splitlines()
    assert 'proofgate_capacity_needed{resource="descriptors"} 8512' in lines
    assert 'proofgate_capacity_available{resource="descriptors"} 1024' in lines
    assert not any(line.startswith('proofgate_capacity_available{resource="ports"}') for line in lines)
    shown = process_limits.as_json((short,))
    assert shown == {"descriptors": {"needed": 8512, "available": 1024, "short": True}}


@pytest.mark.parametrize(("soft", "hard", "after"), [(64, 512, 512), (512, 512, 512)])
def test_every_command_raises_its_soft_limit_of_open_files(soft: int, hard: int, after: int) -> None:
    child = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}));"
        "from proofgate.descriptors import raise_descriptor_limit; raise_descriptor_limit();"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"({after}, {hard})"
