"""What the analysis of answers costs a worker: with all answers analysed, and with the section absent.

    make bench-analysis                 about two minutes; writes bench/results/analysis.json
    python -m bench.analysis --turns 1  prints, and writes nothing

Workers with analysis and without it are asked in turns, for plain answers, until the core is full. How
many answers were analysed, and how many were lost because the thread that analyses got no time, is told beside it: it
has the lowest priority on the worker's core, and traffic goes first.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bench import machine, proofgate_worker, scenarios
from bench.load import tools, upstream
from bench.scenarios import Scenario
from bench.summary import Record, paired, spread
from bench.system import Candidate, System
from bench.turns import take_turns

RESULT = Path(__file__).parent / "results" / "analysis.json"
TURNS = 9
SECONDS = 3
CONNECTIONS = 64
OFF, ON = "off", "on"

Json = dict[str, Any]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, help=f"turns (default {TURNS}); with them nothing is written")
    options = parser.parse_args()
    about, record = machine.describe(), Record()
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        measured = measure(options.turns or TURNS, Path(scratch), record)
    result = {"machine": about, **measured}
    print(json.dumps(result, indent=2))
    if options.turns is None:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if record.voided else 0


def measure(turns: int, folder: Path, record: Record) -> Json:
    """The rates of both, their ratio turn by turn, and what became of the answers."""
    counts: list[Json] = []

    @contextmanager
    def analysing(home: Path, source: str) -> Iterator[System]:
        def change(document: Json) -> None:
            document["analysis"] = {"sample": 1.0}

        with proofgate_worker.start(home, source, change=change) as worker:
            yield worker
            with worker.process.awake():
                counts.append(counted(home))

    candidates = [
        Candidate(OFF, "a worker", lambda: "", proofgate_worker.start),
        Candidate(ON, "a worker that analyses all answers", lambda: "", analysing),
    ]
    with upstream.run(tools.stream_load(), folder, paced=False) as source:
        take_turns(turns, candidates, source.address, folder, plan, record, paced=False)
    rates = {name: record.series("analysis", "c64", name, "requests_per_second") for name in (OFF, ON)}
    return {
        "voided": record.voided,
        "requests_per_second": {name: spread(series.values()) for name, series in rates.items()},
        "on_to_off": paired(rates[ON], rates[OFF], ratio=True),
        "answers": counts[0] if counts else None,
    }


def plan(_candidate: Candidate) -> Iterator[Scenario]:
    """A saturated worker."""
    yield Scenario("analysis", "c64", scenarios.closed(CONNECTIONS, scenarios.PROMPT_BYTES, SECONDS))


def counted(home: Path) -> Json:
    """How many answers the worker in `home` has analysed, and lost by reason."""
    admin = yaml.safe_load((home / "proofgate" / "gateway.yaml").read_text())["admin"]["listen"]
    with urllib.request.urlopen(f"http://{admin}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    series = re.finditer(r'^proofgate_analysis_(answers|lost)_total(?:{reason="(\w+)"})? (\d+)$', text, re.MULTILINE)
    return {f"lost_{found[2]}" if found[2] else "analysed": int(found[3]) for found in series}


if __name__ == "__main__":
    sys.exit(main())
