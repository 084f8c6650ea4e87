"""wrk: a closed loop over a fixed number of connections, on one thread."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.cell import Cell, CellError
from bench.processes import LOAD_CORE, CpuMeter, Pinned

_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 6e7}


@dataclass(frozen=True)
class Output:
    """The figures of wrk's output; times are in microseconds."""

    requests: int
    requests_per_second: float
    p50_us: float
    p99_us: float
    not_2xx: int
    socket_errors: int


def parse(output: str) -> Output:
    """Reads the report of `wrk --latency`. Raises CellError if it is not a report."""
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    return Output(
        requests=int(_find(r"(\d+) requests in", output)),
        requests_per_second=float(_find(r"Requests/sec:\s+([\d.]+)", output)),
        p50_us=_time(_find(r"\n +50% +(\S+)", output)),
        p99_us=_time(_find(r"\n +99% +(\S+)", output)),
        not_2xx=int(bad[1]) if bad else 0,
        socket_errors=sum(map(int, errors.groups())) if errors else 0,
    )


def run(url: str, script: Path, connections: int, seconds: int) -> tuple[Output, float]:
    """Runs wrk; returns its figures and its CPU seconds."""
    command = [
        *("taskset", "-c", str(LOAD_CORE), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s"),
        *("--latency", "--timeout", "10s", "-s", str(script), url),
    ]
    before = _children_cpu()
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    if done.returncode:
        raise CellError(f"wrk ended with {done.returncode}: {done.stderr.strip()[:300]}")
    return parse(done.stdout), _children_cpu() - before


def measure(url: str, script: Path, connections: int, seconds: int, system: Pinned) -> Cell:
    """Measures a closed loop in which every request must succeed."""
    with CpuMeter(system) as cpu:
        output, _ = run(url, script, connections, seconds)
    figures = {
        "requests_per_second": output.requests_per_second,
        "p50_us": output.p50_us,
        "p99_us": output.p99_us,
        "cpu_us_per_request": cpu.seconds * 1e6 / max(output.requests, 1),
    }
    failures = output.not_2xx + output.socket_errors
    reason = f"{output.not_2xx} answers were no success, {output.socket_errors} socket errors"
    if not output.requests:
        return Cell(figures, 1, "no request was answered")
    return Cell(figures, failures, reason if failures else "")


def attack(url: str, script: Path, connections: int, seconds: int, system: Pinned) -> Cell:
    """Measures a closed loop in which every request should be refused: the cost for each side, and the refusals."""
    with CpuMeter(system) as cpu:
        output, attacker = run(url, script, connections, seconds)
    requests = max(output.requests, 1)
    return Cell(
        {
            "requests_per_second": output.requests_per_second,
            "refused_share": output.not_2xx / requests,
            "gateway_cpu_us_per_request": cpu.seconds * 1e6 / requests,
            "attacker_cpu_us_per_request": attacker * 1e6 / requests,
        },
        failures=0 if output.requests else 1,
        reason="" if output.requests else "no request was answered",
    )


def _children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _find(pattern: str, output: str) -> str:
    match = re.search(pattern, output)
    if not match:
        raise CellError(f"wrk printed no {pattern!r}: {output.strip()[:300]}")
    return match[1]


def _time(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    if not match:
        raise CellError(f"not a duration of wrk: {text!r}")
    return float(match[1]) * _UNITS[match[2]]
