"""The properties of a run's machine on which the figures depend."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def describe() -> dict[str, object]:
    """Processor, cores, memory in gigabytes, kernel, and how busy the machine was before the run."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def tool_versions() -> dict[str, str]:
    """The version of the load generator that comes from the distribution."""
    # wrk exits with 1 after printing its version.
    output = subprocess.run(["wrk", "-v"], capture_output=True, text=True).stdout
    return {"wrk": output.split("\n", 1)[0].split(" [")[0].removeprefix("wrk ").strip()}


class CoreMeter:
    """The share of time that a core was busy during the block, which shows whether the load generator is the limit."""

    def __init__(self, core: int) -> None:
        self._core = core
        self.busy_share = 0.0

    def __enter__(self) -> CoreMeter:
        self._before = self._times()
        return self

    def __exit__(self, *_: object) -> None:
        (idle_before, all_before), (idle, all_) = self._before, self._times()
        # The waiting time for disks may decrease (proc(5)).
        self.busy_share = min(1.0, 1 - (idle - idle_before) / max(all_ - all_before, 1))

    def _times(self) -> tuple[int, int]:
        """Ticks without work, and all ticks (proc(5), /proc/stat: user nice system idle iowait irq softirq steal)."""
        lines = Path("/proc/stat").read_text().splitlines()
        line = next(line for line in lines if line.startswith(f"cpu{self._core} "))
        ticks = [int(word) for word in line.split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()
