"""One measurement: wrk against one address, with the CPU time that the system under test spent meanwhile."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.processes import LOAD_CORE, Pinned

_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 6e7}

_SCRIPT = """
wrk.method = "POST"
wrk.path = "/v1/chat/completions"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
wrk.body = [==[{body}]==]
"""


@dataclass(frozen=True)
class Cell:
    """What one run of wrk measured; times in microseconds."""

    requests_per_second: float
    p50_us: float
    p99_us: float
    cpu_us_per_request: float
    errors: int


def write_script(folder: Path, key: str, body: str) -> Path:
    """Writes the request that wrk repeats."""
    script = folder / "request.lua"
    script.write_text(_SCRIPT.format(key=key, body=body))
    return script


def measure(url: str, script: Path, connections: int, seconds: int, system: Pinned) -> Cell:
    """Runs wrk, closed loop, one thread, on the load core."""
    before = system.cpu_seconds()
    command = [
        *("taskset", "-c", str(LOAD_CORE), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s"),
        *("--latency", "--timeout", "10s", "-s", str(script), url),
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 60).stdout
    cpu = system.cpu_seconds() - before
    requests = int(_find(r"(\d+) requests in", output))
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    socket_errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    return Cell(
        requests_per_second=float(_find(r"Requests/sec:\s+([\d.]+)", output)),
        p50_us=_time(_find(r"\n +50% +(\S+)", output)),
        p99_us=_time(_find(r"\n +99% +(\S+)", output)),
        cpu_us_per_request=cpu * 1e6 / max(requests, 1),
        errors=int(bad[1] if bad else 0) + sum(map(int, socket_errors.groups() if socket_errors else ())),
    )


def _find(pattern: str, output: str) -> str:
    match = re.search(pattern, output)
    if not match:
        raise ValueError(f"wrk printed no {pattern!r}:\n{output}")
    return match[1]


def _time(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    if not match:
        raise ValueError(f"not a duration of wrk: {text!r}")
    return float(match[1]) * _UNITS[match[2]]
