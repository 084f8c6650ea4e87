"""The data plane beside other gateways: in one run, on one pinned core, against the same upstream and load.

    make bench                              everything, about 20 minutes; writes bench/results/data-plane.json
    python -m bench.data_plane --quick      one short round, about 4 minutes; writes elsewhere
    python -m bench.data_plane --only haproxy,envoy,proofgate --rounds 5

The gateway under test has core 0; load generator and upstream share core 1. Systems take turns within each round.
Traffic stays on loopback. docs/benchmarks.md tells what the figures mean.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

from bench import haproxy, machine, proofgate_worker, request, scenarios
from bench.cell import Cell, CellError
from bench.load import streams, tools
from bench.processes import GATEWAY_CORE, LOAD_CORE, StartError
from bench.report import table
from bench.scenarios import Length, Scenario, Tools
from bench.summary import Record, Sample, summarise
from bench.system import Candidate, System, UnavailableError
from bench.systems import CANDIDATES, NULL

RESULT = Path(__file__).parent / "results" / "data-plane.json"
_DESCRIPTORS = 16_384

Upstream = Callable[[Path], AbstractContextManager[str]]
Block = tuple[str, Upstream, Callable[[Candidate], Iterator[Scenario]]]


def main() -> None:
    """Runs all rounds, prints a table and writes the result."""
    options = _options()
    # An end from outside unwinds like an error, so that nothing that was started stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    _allow_descriptors()
    about: dict[str, Any] = {"machine": machine.describe()}
    built = Tools(oha=tools.oha(), stream_load=tools.stream_load())
    record = Record()
    versions = {"oha": tools.OHA_VERSION, **machine.tool_versions()}
    chosen = [candidate for candidate in CANDIDATES if candidate.name in options.only]
    ready = [candidate for candidate in chosen if _prepare(candidate, versions, record)]
    length = scenarios.QUICK if options.quick else scenarios.FULL
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        for number in range(options.rounds):
            # Nobody always follows the same neighbour.
            order = ready[number % len(ready) :] + ready[: number % len(ready)]
            _round(number + 1, options.rounds, Path(scratch), order, _blocks(built, length), record)
    about |= {"versions": versions, "method": _method(options.rounds, length)}
    result = summarise(record, about)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")
    print("\n" + table.everything(result))
    print(f"written: {options.output}")


def _options() -> argparse.Namespace:
    names = [candidate.name for candidate in CANDIDATES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="rounds (default 3, 1 with --quick; quote no fewer than 3)")
    parser.add_argument("--quick", action="store_true", help="short measurements, to see that everything works")
    parser.add_argument("--only", help=f"these systems alone, with commas between: {', '.join(names)}")
    parser.add_argument("--output", type=Path, help="where the result goes")
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else names
    unknown = set(options.only) - set(names)
    if unknown:
        parser.error(f"no such system: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: at least 1")
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.output = options.output or (tools.cache() / "quick.json" if options.quick else RESULT)
    return options


def _allow_descriptors() -> None:
    """Raises our own limit of open files, which everything that we start inherits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(_DESCRIPTORS, hard)), hard))


def _prepare(candidate: Candidate, versions: dict[str, str], record: Record) -> bool:
    try:
        versions[candidate.name] = candidate.prepare()
    except UnavailableError as error:
        record.absent[candidate.name] = str(error)
        print(f"{candidate.name} is left out: {error}", flush=True)
        return False
    return True


def _blocks(built: Tools, length: Length) -> list[Block]:
    return [
        ("at once", _instant, partial(scenarios.at_once, tools=built, length=length)),
        ("paced", partial(_paced, built.stream_load), partial(scenarios.paced, tools=built, length=length)),
    ]


@contextmanager
def _instant(folder: Path) -> Iterator[str]:
    with haproxy.null_server(folder, LOAD_CORE) as system:
        yield system.address


@contextmanager
def _paced(stream_load: Path, folder: Path) -> Iterator[str]:
    with streams.upstream(stream_load, folder) as (address, _):
        yield address


def _round(
    number: int, rounds: int, scratch: Path, order: list[Candidate], blocks: list[Block], record: Record
) -> None:
    for title, upstream, plan in blocks:
        for candidate in order:
            todo = list(plan(candidate))
            if candidate.name in record.absent or not todo:
                continue
            print(f"round {number} of {rounds}, upstream {title}: {candidate.name}", flush=True)
            with tempfile.TemporaryDirectory(dir=scratch) as folder, upstream(Path(folder)) as address:
                _visit(number, candidate, title, address, Path(folder), todo, record)


def _visit(
    number: int,
    candidate: Candidate,
    block: str,
    upstream: str,
    folder: Path,
    todo: list[Scenario],
    record: Record,
) -> None:
    """Starts one system and makes all measurements of one block with it."""

    def add(group: str, point: str, cell: Cell) -> None:
        record.add(Sample(number, group, point, candidate.name, cell))
        if cell.failures:
            print(f"  {group}/{point} is void: {cell.reason}", flush=True)

    try:
        with _started(candidate, block, folder, upstream) as system:
            before = system.process.resident_megabytes()
            _greet(system)
            if block == "at once":
                scenarios.closed(16, scenarios.PROMPT_BYTES, 1)(system, folder)
            for scenario in todo:
                try:
                    with machine.CoreMeter(LOAD_CORE) as load_core:
                        cell = scenario.measure(system, folder)
                    busy = {"load_core_busy_share": load_core.busy_share}
                    cell = replace(cell, figures={**cell.figures, **busy})
                except (CellError, SubprocessError, OSError) as error:
                    cell = Cell({}, 1, f"{type(error).__name__}: {error}"[:300])
                add(scenario.group, scenario.point, cell)
            after = system.process.resident_megabytes()
            point = "requests" if block == "at once" else "streams"
            add("memory", point, Cell({"start_mb": before, "after_mb": after}))
    except (StartError, CellError, SubprocessError, OSError) as error:
        record.void(number, candidate.name, f"{block}/start", str(error)[:500])
        print(f"  did not start: {error}", flush=True)


@contextmanager
def _started(candidate: Candidate, block: str, folder: Path, upstream: str) -> Iterator[System]:
    if candidate.name == NULL and block == "paced":
        # Asked directly, the upstream tells how late its own tokens are. It stands where it stands in every other case.
        with streams.upstream(tools.stream_load(), folder, LOAD_CORE) as (address, process):
            yield System(address, process)
    else:
        with candidate.start(folder, upstream) as system:
            yield system


def _greet(system: System) -> None:
    """One request before any is counted: raises StartError when its answer is no completion."""
    connection = http.client.HTTPConnection(system.address, timeout=60)
    try:
        headers = {**system.headers, "Content-Type": "application/json"}
        connection.request("POST", system.path, request.chat("Good morning.", system.model), headers)
        answer = connection.getresponse()
        body = answer.read()
    except http.client.HTTPException as error:
        raise StartError(f"no answer to the first request: {error!r}") from error
    finally:
        connection.close()
    if answer.status != 200 or b'"choices"' not in body:
        raise StartError(f"the first request was answered with {answer.status}: {body[:200]!r}")


def _method(rounds: int, length: Length) -> dict[str, Any]:
    return {
        "rounds": rounds,
        "seconds": vars(length),
        "prompt_bytes": scenarios.PROMPT_BYTES,
        "answer_bytes": len(haproxy.ANSWER),
        "open_loop_rate": scenarios.OPEN_RATE,
        "tokens_per_second": 1_000_000 // streams.INTERVAL_US,
        "gateway_core": GATEWAY_CORE,
        "load_core": LOAD_CORE,
        "proofgate": proofgate_worker.features(),
        "load_after": round(os.getloadavg()[0], 2),
    }


if __name__ == "__main__":
    main()
