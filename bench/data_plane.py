"""First figures of the data plane, beside HAProxy as a plain proxy, in one run on one pinned core.

    make bench            prints them and writes bench/results/data-plane.json

The gateway under test has core 0; load generator (wrk, one thread, closed loop) and upstream (HAProxy answering a fixed
completion) share core 1. Systems take turns within each round, so that a slow minute of the machine hits all of them.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench import systems
from bench.load import Cell, measure, write_script
from bench.processes import GATEWAY_CORE

RESULT = Path(__file__).parent / "results" / "data-plane.json"
CONNECTIONS = (1, 16, 64)
PROMPT = "Summarise the following paragraph in one sentence. " * 16

Start = Callable[[], AbstractContextManager[systems.System]]


def main() -> None:
    """Runs all rounds, prints a table and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds, at least 3 (default 5)")
    parser.add_argument("--seconds", type=int, default=4, help="seconds per measurement (default 4)")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    body = json.dumps({"model": systems.MODEL, "messages": [{"role": "user", "content": PROMPT}]})
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        cells = _run(Path(scratch), body, options.rounds, options.seconds)
    result = _summary(cells, len(body), options.rounds, options.seconds)
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")
    _print(result)
    print(f"written: {options.output}")


def _run(scratch: Path, body: str, rounds: int, seconds: int) -> dict[tuple[str, int], list[Cell]]:
    script = write_script(scratch, systems.KEY, body)
    cells: dict[tuple[str, int], list[Cell]] = {}
    with systems.null_server(scratch) as upstream:
        for number in range(rounds):
            folder = scratch / f"round-{number}"
            folder.mkdir()
            starts: dict[str, Start] = {
                "null-server": partial(systems.null_server, folder, GATEWAY_CORE),
                "haproxy": partial(systems.haproxy, folder, upstream),
                "proofgate": partial(systems.proofgate, folder, upstream),
                "proofgate-spinning": partial(systems.proofgate, folder, upstream, spin=True),
            }
            for name, start in starts.items():
                print(f"round {number + 1} of {rounds}: {name}", flush=True)
                with start() as system:
                    measure(system.url, script, 16, 1, system.pinned)
                    for connections in CONNECTIONS:
                        cell = measure(system.url, script, connections, seconds, system.pinned)
                        if cell.errors:
                            raise SystemExit(f"{name} at c={connections}: {cell.errors} failed requests void the run")
                        cells.setdefault((name, connections), []).append(cell)
    return cells


def _summary(cells: dict[tuple[str, int], list[Cell]], body: int, rounds: int, seconds: int) -> dict[str, Any]:
    def spread(name: str, connections: int, figure: str) -> dict[str, float]:
        values = [asdict(cell)[figure] for cell in cells[name, connections]]
        low, high = min(values), max(values)
        return {"median": round(statistics.median(values), 2), "min": round(low, 2), "max": round(high, 2)}

    names = sorted({name for name, _ in cells})
    table = {
        name: {
            f"c{connections}": {
                figure: spread(name, connections, figure)
                for figure in ("requests_per_second", "p50_us", "p99_us", "cpu_us_per_request")
            }
            for connections in CONNECTIONS
        }
        for name in names
    }
    proxies = [name for name in names if name != "null-server"]

    def rps(name: str) -> float:
        return max(table[name][f"c{c}"]["requests_per_second"]["median"] for c in CONNECTIONS)

    def added(name: str, figure: str) -> float:
        return round(table[name]["c1"][figure]["median"] - table["null-server"]["c1"][figure]["median"], 2)

    return {
        "machine": {"processor": _processor(), "kernel": platform.release()},
        "method": {
            "rounds": rounds,
            "seconds_per_cell": seconds,
            "request_body_bytes": body,
            "response_body_bytes": len(systems.ANSWER),
            "loop": "closed",
        },
        "null_server_rps": rps("null-server"),
        "rps_per_core": {name: rps(name) for name in proxies},
        "cpu_us_per_request": {name: table[name]["c64"]["cpu_us_per_request"]["median"] for name in proxies},
        "added_latency_us": {name: {"p50": added(name, "p50_us"), "p99": added(name, "p99_us")} for name in proxies},
        "ratio_to": {"haproxy": _paired(cells, "proofgate", "haproxy")},
        "spinning_python_ratio": _paired(cells, "proofgate-spinning", "proofgate"),
        "cells": table,
    }


def _paired(cells: dict[tuple[str, int], list[Cell]], system: str, other: str) -> dict[str, dict[str, float]]:
    """Requests per second of `system` over those of `other`, each pair from the same round: the machine drifts."""
    ratios = {}
    for connections in CONNECTIONS:
        pairs = zip(cells[system, connections], cells[other, connections], strict=True)
        values = [one.requests_per_second / two.requests_per_second for one, two in pairs]
        ratios[f"c{connections}"] = {
            "median": round(statistics.median(values), 3),
            "min": round(min(values), 3),
            "max": round(max(values), 3),
        }
    return ratios


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def _print(result: dict[str, Any]) -> None:
    print(f"\n{'system':20}{'c':>4}{'requests/s':>27}{'p50 us':>10}{'p99 us':>10}{'CPU us/request':>16}")
    for name, row in result["cells"].items():
        for connections in CONNECTIONS:
            cell = row[f"c{connections}"]
            rate = cell["requests_per_second"]
            spread = f"{rate['median']:,.0f} ({rate['min']:,.0f}-{rate['max']:,.0f})"
            print(
                f"{name:20}{connections:>4}{spread:>27}{cell['p50_us']['median']:>10.0f}"
                f"{cell['p99_us']['median']:>10.0f}{cell['cpu_us_per_request']['median']:>16.1f}"
            )
    for title, ratios in (
        ("proofgate / haproxy, requests per second on one core", result["ratio_to"]["haproxy"]),
        ("with a spinning Python thread / without", result["spinning_python_ratio"]),
    ):
        told = [f"{c} {ratio['median']} ({ratio['min']}-{ratio['max']})" for c, ratio in ratios.items()]
        print(f"{title}: {', '.join(told)}")


if __name__ == "__main__":
    main()
