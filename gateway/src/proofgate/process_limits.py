"""Compares the resources that the system allows this process with the needs of its configuration.

A worker promises `limits.connections` connections. Each needs descriptors, a port to its provider and memory,
and all of them need threads. Shortages are reported at the start, before they affect a client.
"""

from __future__ import annotations

import logging
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofgate.cgroups import read_limit_or_usage
from proofgate.config import Config

log = logging.getLogger("proofgate")

#: Descriptors that a worker reserves from a high limit (`reserved` in its status); connections cannot use them.
RESERVED_DESCRIPTORS = 320
#: Threads of the core, of the admin port, and for fetching keys and credentials.
REQUIRED_THREADS = 128
#: Bytes of the process without clients, plus bytes of idle buffers (docs/how-to/size-a-worker.md).
IDLE_MEMORY_BYTES = (60 + 12) << 20
#: Memory of a request or response while it is read, as a multiple of `limits.bodyBytes`.
BODY_COPIES = 5
#: File with the range of ports for IPv4 and IPv6 (ip-sysctl of the kernel).
_PORT_RANGE_PATH = Path("proc/sys/net/ipv4/ip_local_port_range")
_MEMINFO_PATH = Path("proc/meminfo")
_REMEDY = {
    "descriptors": "raise RLIMIT_NOFILE of the container or unit (LimitNOFILE), or lower limits.connections",
    "threads": "raise RLIMIT_NPROC or pids.max (podPidsLimit of the kubelet)",
    "ports": "widen net.ipv4.ip_local_port_range, or lower limits.connections",
    "memory": "raise the memory limit, or lower limits.connections or limits.bufferedBytes",
}


@dataclass(frozen=True)
class Capacity:
    """The needed and the available amount of one resource."""

    resource: str
    """`descriptors`, `threads`, `ports` or `memory` (bytes)."""
    needed: int
    available: int | None
    """The available amount. None: the amount is unlimited, or the system does not report a limit."""

    @property
    def is_short(self) -> bool:
        """Whether the available amount is too small."""
        return self.available is not None and self.available < self.needed

    def describe(self) -> str:
        """Describes the shortage and what to do."""
        what = "too little memory" if self.resource == "memory" else f"too few {self.resource}"
        unit = " bytes" if self.resource == "memory" else ""
        return (
            f"{what} for the configured limits: {self.needed}{unit} needed, "
            f"{self.available} available; {_REMEDY[self.resource]}"
        )


def read_capacities(
    config: Config, process: Path = Path("/proc/self"), root: Path = Path("/")
) -> tuple[Capacity, ...]:
    """Returns what `config` needs and what the process may use now. `process` and `root` are as in
    `cgroups.read_cpu_quota`."""
    limits = config.settings.limits
    analysis, payloads = config.settings.analysis, config.settings.ledger.payloads
    memory = (
        IDLE_MEMORY_BYTES
        + limits.connection_memory
        + limits.buffered_bytes
        + BODY_COPIES * limits.body_bytes
        + (analysis.memory if analysis else 0)
        + (payloads.budget_bytes if payloads else 0)
    )
    return (
        Capacity(
            "descriptors", 2 * limits.connections + RESERVED_DESCRIPTORS, _soft_limit(resource.RLIMIT_NOFILE)
        ),
        Capacity(
            "threads",
            REQUIRED_THREADS,
            _min_bound(_soft_limit(resource.RLIMIT_NPROC), _free_pids(process, root)),
        ),
        Capacity("ports", limits.connections, _ports(root)),
        Capacity(
            "memory", memory, _min_bound(read_limit_or_usage("memory", process, root), _machine_memory(root))
        ),
    )


def warn_about_shortages(capacities: tuple[Capacity, ...]) -> None:
    """Logs each shortage."""
    for capacity in capacities:
        if capacity.is_short:
            log.warning("%s", capacity.describe())


def as_json(capacities: tuple[Capacity, ...]) -> dict[str, Any]:
    """Returns the JSON form for the admin port."""
    return {
        capacity.resource: {
            "needed": capacity.needed,
            "available": capacity.available,
            "short": capacity.is_short,
        }
        for capacity in capacities
    }


def metrics_of(capacities: tuple[Capacity, ...]) -> str:
    """Renders the capacities as Prometheus text. Without a limit, there is no `available`."""
    needed, available = "proofgate_capacity_needed", "proofgate_capacity_available"
    lines = [
        f"# HELP {needed} Resources that the configured limits need, memory in bytes.",
        f"# TYPE {needed} gauge",
        *(f'{needed}{{resource="{each.resource}"}} {each.needed}' for each in capacities),
        f"# HELP {available} Resources that the process may use, memory in bytes.",
        f"# TYPE {available} gauge",
        *(
            f'{available}{{resource="{each.resource}"}} {each.available}'
            for each in capacities
            if each.available is not None
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


def _soft_limit(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _free_pids(process: Path, root: Path) -> int | None:
    """The number of tasks that the process may have: its current ones plus the free ones of its control
    group."""
    most, now = (
        read_limit_or_usage("pids", process, root),
        read_limit_or_usage("pids", process, root, now=True),
    )
    if most is None:
        return None
    own = _read_integers(process / "status", "Threads:")
    return max(0, most - (now or 0) + (own[0] if own else 0))


def _ports(root: Path) -> int | None:
    words = _read_integers(root / _PORT_RANGE_PATH)
    return max(0, words[1] - words[0] + 1) if len(words) == 2 else None


def _machine_memory(root: Path) -> int | None:
    words = _read_integers(root / _MEMINFO_PATH, "MemTotal:")
    return words[0] << 10 if words else None


def _read_integers(path: Path, field: str = "") -> list[int]:
    """Reads the numbers in a file, or after a field at the start of a line."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        if line.startswith(field):
            return [int(word) for word in line[len(field) :].split() if word.isascii() and word.isdigit()]
    return []


def _min_bound(*bounds: int | None) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return min(known, default=None)
