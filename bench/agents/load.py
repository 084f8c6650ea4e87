"""stream-load's client for agents: requests of sessions, and the cost of each for the gateway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from bench.cell import Cell, CellError
from bench.load.window import read_window
from bench.processes import LOAD_CORE
from bench.system import System

#: Last turns of unseen sessions; last turns after a seen history; whole sessions, turn by turn.
Play = Literal["first", "next", "whole"]


def parse(line: str, gateway_cpu_seconds: float) -> Cell:
    """Reads the client's report. Raises CellError when it is none."""
    try:
        report: dict[str, Any] = json.loads(line)
        failed, reason = int(report["failed"]), str(report["first_failure"])
        requests, window_us = int(report["requests"]), int(report["window_us"])
        if failed or not requests:
            return Cell({}, failed or 1, f"{failed} agents failed, the first: {reason}" if failed else "no answer came")
        figures = {
            "requests_per_second": requests * 1e6 / window_us,
            "p50_us": float(report["p50_us"]),
            "p99_us": float(report["p99_us"]),
            "kilobytes": int(report["bytes"]) / requests / 1024,
            "cpu_us_per_request": gateway_cpu_seconds * 1e6 / requests,
        }
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise CellError(f"stream-load printed no report: {line.strip()[:300]}") from error
    return Cell(figures)


def measure(stream_load: Path, system: System, session: Path, play: Play, connections: int, milliseconds: int) -> Cell:
    """Lets `connections` agents play a session's file for some time; whole sessions run to their end."""
    command = [
        *("taskset", "-c", str(LOAD_CORE), str(stream_load), "agents", "--target", system.address),
        *("--path", system.path, "--session", str(session), "--play", play),
        *("--connections", str(connections), "--window-ms", str(milliseconds)),
        *(word for name, text in system.headers.items() for word in ("--header", f"{name}: {text}")),
    ]
    last, cpu = read_window(command, system.process)
    return parse(last, cpu)
