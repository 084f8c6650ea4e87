"""Measures the cost of the evidence: of verifying and following the ledger, and the effects on a worker.

    make bench-evidence                 about four minutes; writes bench/results/evidence.json
    make bench-evidence BEFORE=2e49bd9  also with a worker of that revision, which is built first (six minutes)
    python -m bench.evidence --turns 1  prints, and writes nothing
    python -m bench.evidence --verify 20000  verifies only logs of this many records; prints, and writes nothing

It verifies a log that ended under a checkpoint, and the log of a killed worker, which its successor signed.

Workers that differ in one property are loaded in turns until the core is full: one that an auditor follows, one that
analyses its answers, one with shred keys, and one that also stores payloads. The auditor is on the load's core, and
stays awake while its worker is paused, so it can catch up between two turns. Analysis and storing have the lowest
priority on the worker's core. So the result also has the number of analysed answers, and of those lost for lack of
time.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import secrets
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bench import earlier, followed, machine, proofgate_worker, scenarios
from bench.ledger import MANIFEST, ROOT
from bench.load import tools, upstream
from bench.scenarios import Scenario
from bench.summary import Record, paired, spread
from bench.system import Candidate, System
from bench.turns import take_turns

RESULT = Path(__file__).parent / "results" / "evidence.json"
RECORDS = 400_000
TURNS = 15
SECONDS = 2
CONNECTIONS = 64
ALONE, FOLLOWED, ANALYSING = "alone", "followed", "analysing"
SHREDDABLE, STORING, BEFORE = "shreddable", "storing", "before"

Json = dict[str, Any]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, help=f"turns (default {TURNS}); with them nothing is written")
    parser.add_argument("--before", metavar="REVISION", help="a worker of this revision is asked, too")
    parser.add_argument("--verify", type=int, metavar="RECORDS", help="verify logs of so many records, and no more")
    options = parser.parse_args()
    if options.verify is not None:
        with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
            print(json.dumps(verify(Path(scratch), options.verify), indent=2))
        return 0
    before = earlier.worker(options.before) if options.before else None
    about, record = machine.describe(), Record()
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        verifying = verify(Path(scratch))
        costs = compare(options.turns or TURNS, Path(scratch), record, before)
    result = {"machine": about, "verify_million_records_per_s": verifying, **costs}
    if before:
        result["before"]["revision"] = options.before
    print(json.dumps(result, indent=2))
    if options.turns is None:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if record.voided else 0


def verify(folder: Path, records: int = RECORDS) -> Json:
    """Million records a second of one core, as the auditor's own example prints them: verified, and what is in that."""
    command = ["cargo", "--locked", "run", "--release", "--quiet", "--manifest-path", str(MANIFEST)]
    command += ["--package", "proofgate-auditor", "--example", "verify_speed", "--", str(folder), str(records)]
    return verified(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)


def verified(printed: str) -> Json:
    """The rates that the example prints, by what was done: `sealed` logs, those of a `killed` worker, and parts."""
    lines = re.finditer(r"^  (.+): ([\d.]+) \(([\d.]+) to ([\d.]+)\)$", printed, re.MULTILINE)
    told: Json = {}
    for line in lines:
        what, _, killed = line[1].partition(", ") if line[1].endswith(", killed") else (line[1], "", "")
        rates = {"median": float(line[2]), "min": float(line[3]), "max": float(line[4])}
        if what.startswith("verified"):
            told.setdefault(what, {})[killed or "sealed"] = rates
        else:
            told[what] = rates
    return told


def compare(turns: int, folder: Path, record: Record, before: Path | None) -> Json:
    """The rates of all, their ratios to a worker alone turn by turn, and what became of what they did besides."""
    told: dict[str, Json] = {}
    starts: dict[str, Callable[..., Any]] = {
        ALONE: proofgate_worker.start,
        FOLLOWED: partial(_followed, told),
        ANALYSING: partial(_changed, _analysing, told, ANALYSING),
        SHREDDABLE: partial(_changed, _shreddable, told, SHREDDABLE),
        STORING: partial(_changed, _storing, told, STORING),
    }
    if before:
        starts[BEFORE] = partial(proofgate_worker.start, package=before)
    candidates = [Candidate(name, name, lambda: "", start) for name, start in starts.items()]
    with upstream.run(tools.stream_load(), folder, paced=False) as source:
        take_turns(turns, candidates, source.address, folder, plan, record, paced=False)
    figures: Json = {"voided": record.voided}
    alone = _series(record, ALONE)
    for name in starts:
        rates, cpu = _series(record, name)
        figures[name] = {"requests_per_second": spread(rates.values()), "cpu_us_per_request": spread(cpu.values())}
        if name != ALONE:
            figures[name]["to_alone"] = paired(rates, alone[0], ratio=True)
            figures[name]["cpu_to_alone"] = paired(cpu, alone[1], ratio=True)
        figures[name] |= told.get(name, {})
    return figures


def plan(_candidate: Candidate) -> Iterator[Scenario]:
    """The plan: a saturated worker."""
    yield Scenario("evidence", "c64", scenarios.closed(CONNECTIONS, scenarios.PROMPT_BYTES, SECONDS))


def _series(record: Record, name: str) -> tuple[dict[int, float], dict[int, float]]:
    figures = ("requests_per_second", "cpu_us_per_request")
    rates, cpu = (record.series("evidence", "c64", name, figure) for figure in figures)
    return rates, cpu


@contextmanager
def _followed(told: dict[str, Json], home: Path, source: str) -> Iterator[System]:
    with proofgate_worker.start(home, source) as worker, followed.auditor(home) as (process, address):
        begun = process.cpu_seconds()
        yield worker
        with worker.process.awake():
            told[FOLLOWED] = {"auditor": followed.caught_up(process, address, begun)}


@contextmanager
def _changed(
    change: Callable[[Json, Path], None], told: dict[str, Json], name: str, home: Path, source: str
) -> Iterator[System]:
    with proofgate_worker.start(home, source, change=lambda document: change(document, home)) as worker:
        yield worker
        with worker.process.awake():
            told[name] = {"counted": _counted(home)}


def _analysing(document: Json, _home: Path) -> None:
    document["analysis"] = {"sample": 1.0}


def _shreddable(document: Json, home: Path) -> None:
    keys = home / "shred-keys"
    keys.mkdir()
    for tenant in document["tenants"]:
        (keys / tenant["name"]).write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
    document["ledger"]["shredKeysDirectory"] = str(keys)


def _storing(document: Json, home: Path) -> None:
    _shreddable(document, home)
    document["ledger"]["payloads"] = {"mode": "Stored"}


def _counted(home: Path) -> dict[str, int]:
    """The counts of the worker in `home`: analysed answers and stored bodies."""
    admin = yaml.safe_load((home / "proofgate" / "gateway.yaml").read_text())["admin"]["listen"]
    with urllib.request.urlopen(f"http://{admin}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    series = re.finditer(r"^proofgate_((?:analysis|payload)\w*_total(?:{[^}]*})?) (\d+)$", text, re.MULTILINE)
    return {found[1]: int(found[2]) for found in series if int(found[2])}


if __name__ == "__main__":
    sys.exit(main())
