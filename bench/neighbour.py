"""Measures the effect on a tenant while another tenant of the worker sends the largest prompts without a pause.

    make bench-neighbour                  about six minutes; writes bench/results/neighbour.json
    python -m bench.neighbour --turns 1   prints, and writes nothing

It measures small requests at a constant rate, and the tokens of streams, alone and beside one client that sends prompts
of 10 MiB one after another. The upstream itself and plain HAProxy are measured in the same way. A loss that they also
have is caused by the load core, which generates the load and receives the prompts.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench import machine, request
from bench.cell import Cell
from bench.load import open_loop, streams, tools, upstream
from bench.processes import LOAD_CORE
from bench.scenarios import Scenario, Tools
from bench.summary import Record, paired, spread
from bench.system import Candidate, System
from bench.systems import CANDIDATES, NULL, PRODUCT
from bench.turns import take_turns

RESULT = Path(__file__).parent / "results" / "neighbour.json"
TURNS = 5
SYSTEMS = (NULL, "haproxy", PRODUCT)
#: The limit of a body, minus the JSON around the prompt.
PROMPT_BYTES = (10 << 20) - 1024
RATE = 200
STREAMS = 20
SECONDS = 4

Measure = Callable[[System, Path], Cell]
#: The kinds of traffic, with the figure of their latency.
FIGURES = {"requests": "p99_us", "tokens": "late_p99_us"}


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, help=f"turns (default {TURNS}); with them nothing is written")
    options = parser.parse_args()
    record, about = Record(), machine.describe()
    built = Tools(oha=tools.oha(), stream_load=tools.stream_load())
    chosen = [candidate for candidate in CANDIDATES if candidate.name in SYSTEMS]
    for candidate in chosen:
        candidate.prepare()
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        folder = Path(scratch)
        with upstream.run(built.stream_load, folder, paced=True) as source:
            plan = partial(scenarios, tools=built)
            take_turns(options.turns or TURNS, chosen, source.address, folder, plan, record, paced=True)
    result = {"machine": about, **summarise(record)}
    print(json.dumps(result, indent=2))
    if options.turns is None:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if record.voided else 0


def scenarios(_candidate: Candidate, tools: Tools) -> Iterator[Scenario]:
    """The scenarios: both kinds of traffic, alone and beside the prompts."""

    def requests(system: System, folder: Path) -> Cell:
        body = folder / "small.json"
        body.write_text(request.chat(request.prompt(1_024), system.model))
        return open_loop.measure(tools.oha, system.url, system.headers, body, RATE, SECONDS, system.process)

    def tokens(system: System, folder: Path) -> Cell:
        body = folder / "stream.json"
        body.write_text(request.chat(request.prompt(1_024), system.model, stream=True))
        where = system.address, system.path, system.headers
        return streams.measure(tools.stream_load, *where, body, STREAMS, SECONDS, system.process)

    for group, measure in (("requests", requests), ("tokens", tokens)):
        yield Scenario(group, "alone", measure)
        yield Scenario(group, "beside", beside(measure))


def beside(measure: Measure) -> Measure:
    """Runs the same measurement while prompts are sent."""

    def measured(system: System, folder: Path) -> Cell:
        with prompts(system, folder) as sent:
            cell = measure(system, folder)
        if not cell.failures and sent() == 0:
            return Cell(cell.figures, 1, "no prompt was answered with success")
        return Cell({**cell.figures, "prompts_per_second": sent()}, cell.failures, cell.reason)

    return measured


@contextmanager
def prompts(system: System, folder: Path) -> Iterator[Callable[[], float]]:
    """Sends prompts one after another until the block ends; then tells how many a second were answered with success."""
    script = folder / "prompt.lua"
    headers = {**system.headers, "Content-Type": "application/json"}
    if not script.exists():
        request.write_script(script, system.path, headers, request.chat(request.prompt(PROMPT_BYTES), system.model))
    command = [
        # It has what the measuring clients leave of their core, so that it delays them as little as can be.
        *("taskset", "-c", str(LOAD_CORE), "chrt", "--idle", "0", "wrk", "-t1", "-c1", "-d60s"),
        *("--timeout", "10s", "-s", str(script), system.url),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
        output = ""

        def sent() -> float:
            bad = "Non-2xx" in output or "Requests/sec:" not in output
            return 0.0 if bad else float(output.rsplit("Requests/sec:", 1)[1].split()[0])

        yield sent
        # The client ends and prints its report.
        client.send_signal(signal.SIGINT)
        output, _ = client.communicate(timeout=60)


def summarise(record: Record) -> dict[str, Any]:
    """The p99 latency of every system alone and beside the prompts, in microseconds, and its growth."""
    result: dict[str, Any] = {"voided": record.voided}
    for group, figure in FIGURES.items():
        systems = result[group] = {}
        for name in SYSTEMS:
            alone, loaded = (record.series(group, point, name, figure) for point in ("alone", "beside"))
            if not (alone.keys() & loaded.keys()):
                continue
            systems[name] = {
                "alone_p99_us": spread(alone.values()),
                "beside_p99_us": spread(loaded.values()),
                "grows_us": paired(loaded, alone, ratio=False),
                "prompts_per_second": spread(record.series(group, "beside", name, "prompts_per_second").values()),
            }
    return result


if __name__ == "__main__":
    sys.exit(main())
