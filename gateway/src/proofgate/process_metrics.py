"""The standard Prometheus metrics of a process: its build and its use of resources.

Names and meanings are those of Prometheus' client libraries
(prometheus.io/docs/instrumenting/writing_clientlibs, "Process metrics").
"""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from pathlib import Path

from proofgate import __version__

_PROCESS = Path("/proc/self")
#: Positions in /proc/self/stat after the name of the program, which may contain spaces (proc_pid_stat(5)).
_UTIME, _STIME, _START, _VSIZE, _RSS = 11, 12, 19, 20, 21


def render(component: str, *, openmetrics: bool = False) -> str:
    """Renders the metrics of this process as text. `component` is the name of the program.

    In the TYPE line, OpenMetrics omits the `_total` of a counter, and the older text format includes it.
    """
    lines = [*_build(component), *_process("" if openmetrics else "_total")]
    return "".join(f"{line}\n" for line in lines)


def _build(component: str) -> Iterator[str]:
    name = "proofgate_build_info"
    yield from _family(name, "gauge", "1, with the running version as labels")
    python = platform.python_version()
    yield f'{name}{{component="{component}",version="{__version__}",python="{python}"}} 1'


def _process(total: str) -> Iterator[str]:
    """Yields the metric lines; none if /proc cannot be read."""
    try:
        fields = (_PROCESS / "stat").read_text().rpartition(")")[2].split()
        machine = Path("/proc/stat").read_text().splitlines()
        boot = next(int(line.split()[1]) for line in machine if line.startswith("btime "))
        descriptors = len(os.listdir(_PROCESS / "fd"))  # noqa: PTH208 - the names are not wanted
    except (OSError, StopIteration):
        return
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    name = "process_cpu_seconds"
    yield from _family(f"{name}{total}", "counter", "CPU time in user and system mode, in seconds")
    yield f"{name}_total {(int(fields[_UTIME]) + int(fields[_STIME])) / ticks:.2f}"
    for name, value, text in (
        ("resident_memory_bytes", int(fields[_RSS]) * page, "Resident memory"),
        ("virtual_memory_bytes", int(fields[_VSIZE]), "Virtual memory"),
        (
            "start_time_seconds",
            boot + int(fields[_START]) / ticks,
            "Start time of the process since the Unix epoch, in seconds",
        ),
        ("open_fds", descriptors, "Number of open file descriptors"),
        ("max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0], "Maximum number of open file descriptors"),
    ):
        yield from _family(f"process_{name}", "gauge", text)
        yield f"process_{name} {value}"


def _family(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}."
    yield f"# TYPE {name} {kind}"
