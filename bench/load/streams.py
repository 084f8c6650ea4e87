"""stream-load: paced streams of tokens, their lateness, and the cost of a token for the gateway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.cell import Cell, CellError
from bench.load.upstream import TOKENS
from bench.load.window import read_window
from bench.processes import LOAD_CORE, Pinned

_RAMP_MS = 1_000


def parse(line: str, gateway_cpu_seconds: float) -> Cell:
    """Reads the client's report. Raises CellError if it is not a report."""
    try:
        report: dict[str, Any] = json.loads(line)
        chunks, window_us = int(report["chunks"]), int(report["window_us"])
        figures = {
            "chunks_per_second": chunks * 1e6 / window_us,
            "late_p50_us": float(report["late_p50_us"]),
            "late_p99_us": float(report["late_p99_us"]),
            "cpu_us_per_chunk": gateway_cpu_seconds * 1e6 / max(chunks, 1),
        }
        failed, reason = int(report["failed"]), str(report["first_failure"])
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise CellError(f"stream-load printed no report: {line.strip()[:300]}") from error
    if not failed and not chunks:
        return Cell(figures, 1, "no token came")
    return Cell(figures, failed, f"{failed} streams failed, the first: {reason}" if failed else "")


def measure(
    stream_load: Path,
    address: str,
    path: str,
    headers: dict[str, str],
    body: Path,
    streams: int,
    seconds: int,
    system: Pinned,
) -> Cell:
    """Keeps `streams` streams open for `seconds` and measures every token that comes in that time."""
    command = [
        *("taskset", "-c", str(LOAD_CORE), str(stream_load), "client", "--target", address, "--path", path),
        *("--body", str(body), "--streams", str(streams), "--tokens", str(TOKENS)),
        *("--ramp-ms", str(_RAMP_MS), "--window-ms", str(seconds * 1_000)),
        *(word for name, text in headers.items() for word in ("--header", f"{name}: {text}")),
    ]
    last, cpu = read_window(command, system)
    return parse(last, cpu)
