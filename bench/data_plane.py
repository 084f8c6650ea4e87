"""Compares the data plane with other gateways in one run, on one pinned core, with the same upstream and load.

    make bench                              everything, about 40 minutes; writes bench/results/data-plane.json
    python -m bench.data_plane --quick      once and short, about 6 minutes; writes elsewhere
    python -m bench.data_plane --only haproxy,envoy,proofgate --turns 15
    python -m bench.data_plane --before REVISION --only proofgate     today's worker beside an earlier one

The gateway under test has core 0; load generator and upstream share core 1. The systems take turns of seconds, first
with an upstream that answers immediately, then with a paced one. Traffic stays on loopback.
docs/reference/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench import earlier, machine, proofgate_worker, scenarios
from bench.load import tools, upstream
from bench.processes import GATEWAY_CORE, LOAD_CORE
from bench.report import data_plane as tables
from bench.scenarios import Tools
from bench.summary import Record, summarise
from bench.system import Candidate, UnavailableError
from bench.systems import BEFORE, CANDIDATES, PROOFGATE_REFUSES
from bench.turns import take_turns

RESULT = Path(__file__).parent / "results" / "data-plane.json"
_DESCRIPTORS = 16_384


def main() -> None:
    """Takes all turns, prints a table and writes the result."""
    options = _options()
    # A signal from outside unwinds like an error, so that no started process remains.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    _allow_descriptors()
    about: dict[str, Any] = {"machine": machine.describe()}
    built = Tools(oha=tools.oha(), stream_load=tools.stream_load())
    record = Record()
    versions = {"oha": tools.OHA_VERSION, **machine.tool_versions()}
    chosen = [candidate for candidate in CANDIDATES if candidate.name in options.only]
    if options.before:
        chosen.append(_earlier(options.before))
    ready = [candidate for candidate in chosen if _prepare(candidate, versions, record)]
    length = scenarios.QUICK if options.quick else scenarios.FULL
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        for paced, turns, plan in (
            (False, options.turns, scenarios.at_once),
            (True, options.paced_turns, scenarios.paced),
        ):
            folder = Path(scratch) / ("paced" if paced else "at-once")
            folder.mkdir()
            with upstream.run(built.stream_load, folder, paced=paced) as source:
                asked = partial(plan, tools=built, length=length)
                take_turns(turns, ready, source.address, folder, asked, record, paced=paced)
    about |= {"versions": versions, "method": _method(options, length)}
    result = summarise(record, about)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")
    print("\n" + tables.everything(result))
    if options.before:
        told = json.dumps(result["ratio_to"].get(BEFORE), indent=2)
        print(f"requests/s of today's worker to those of {options.before}, turn by turn:\n{told}")
    print(f"written: {options.output}")


def _options() -> argparse.Namespace:
    names = [candidate.name for candidate in CANDIDATES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=_count, help="turns (default 7, 1 with --quick; quote no fewer than 5)")
    parser.add_argument(
        "--paced-turns",
        type=_count,
        help="turns in front of the paced upstream (default 3, 1 with --quick; quote no fewer than 3)",
    )
    parser.add_argument("--quick", action="store_true", help="short measurements, to see that everything works")
    parser.add_argument("--only", help=f"these systems alone, with commas between: {', '.join(names)}")
    parser.add_argument("--before", metavar="REVISION", help="a worker of this revision is measured, too")
    parser.add_argument("--output", type=Path, help="where the result goes (default with --before: the cache)")
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else names
    unknown = set(options.only) - set(names)
    if unknown:
        parser.error(f"no such system: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    options.turns = options.turns or (1 if options.quick else 7)
    options.paced_turns = options.paced_turns or (1 if options.quick else 3)
    passing = options.quick or options.before
    options.output = options.output or (tools.cache() / "quick.json" if passing else RESULT)
    return options


def _earlier(revision: str) -> Candidate:
    package = earlier.worker(revision)
    about = f"the worker of {revision}, everything on"
    start = partial(proofgate_worker.start, package=package)
    return Candidate(BEFORE, about, lambda: revision, start, refuses=PROOFGATE_REFUSES)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def _allow_descriptors() -> None:
    """Raises this process's limit of open files, which all started processes inherit."""
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


def _method(options: argparse.Namespace, length: scenarios.Length) -> dict[str, Any]:
    return {
        "turns": options.turns,
        "paced_turns": options.paced_turns,
        "seconds": asdict(length),
        "prompt_bytes": scenarios.PROMPT_BYTES,
        "answer_bytes": len(upstream.ANSWER),
        "open_loop_rate": scenarios.OPEN_RATE,
        "tokens_per_second": 1_000_000 // upstream.INTERVAL_US,
        "gateway_core": GATEWAY_CORE,
        "load_core": LOAD_CORE,
        "proofgate": proofgate_worker.features(),
        "load_after": round(os.getloadavg()[0], 2),
    }


if __name__ == "__main__":
    main()
