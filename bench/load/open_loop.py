"""oha: a constant rate of arrivals, each latency from the moment at which the request should have been sent.

A closed loop stops sending while a server stalls and so leaves the stall out of its percentiles (coordinated omission).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from bench.cell import Cell, CellError
from bench.processes import LOAD_CORE, CpuMeter, Pinned

_CONNECTIONS = 64


def parse(output: str) -> Cell:
    """Reads oha's JSON report, with latencies in microseconds. Raises CellError if it is not a report."""
    try:
        report: dict[str, Any] = json.loads(output)
        percentiles = report["latencyPercentiles"]
        figures = {
            "requests_per_second": float(report["summary"]["requestsPerSec"]),
            **{
                f"{name.replace('.', '')}_us": float(percentiles[name]) * 1e6 for name in ("p50", "p90", "p99", "p99.9")
            },
        }
        statuses: dict[str, int] = report["statusCodeDistribution"]
        errors: dict[str, int] = report["errorDistribution"]
    except (ValueError, KeyError, TypeError) as error:
        raise CellError(f"oha printed no report: {output.strip()[:300]}") from error
    bad = {status: count for status, count in statuses.items() if not status.startswith("2")} | errors
    reason = ", ".join(f"{count} x {what}" for what, count in bad.items())
    return Cell(figures, sum(bad.values()), reason)


def measure(oha: Path, url: str, headers: dict[str, str], body: Path, rate: int, seconds: int, system: Pinned) -> Cell:
    """Sends `rate` requests a second for `seconds`. The cell is void if the system could not keep up."""
    command = [
        *("taskset", "-c", str(LOAD_CORE), str(oha), "--no-tui", "--output-format", "json", "--no-color"),
        *("-q", str(rate), "--latency-correction", "-n", str(rate * seconds), "-c", str(_CONNECTIONS)),
        *("-t", "10s", "-m", "POST", "-D", str(body), "-T", "application/json"),
        *(word for name, text in headers.items() for word in ("-H", f"{name}: {text}")),
        url,
    ]
    with CpuMeter(system) as cpu:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 3 + 60)
    if done.returncode:
        raise CellError(f"oha ended with {done.returncode}: {done.stderr.strip()[:300]}")
    cell = parse(done.stdout)
    figures = {**cell.figures, "cpu_us_per_request": cpu.seconds * 1e6 / (rate * seconds)}
    reached = cell.figures["requests_per_second"]
    if not cell.failures and reached < 0.9 * rate:
        return Cell(figures, 1, f"took {reached:.0f} of {rate} requests per second")
    return Cell(figures, cell.failures, cell.reason)
