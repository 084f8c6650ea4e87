"""What it takes to hold the ledger to account: verifying, following, and what a worker notices of being followed.

    make bench-evidence                 about two minutes; writes bench/results/evidence.json
    python -m bench.evidence --turns 1  prints, and writes nothing

A worker that is followed by an auditor and one that is not are asked in turns. The auditor is on the load's core, and
stays awake when its worker is not: it has the time between two turns to catch up.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proofgate import _core

from bench import machine, proofgate_worker, scenarios
from bench.ledger import MANIFEST, ROOT
from bench.load import tools, upstream
from bench.processes import LOAD_CORE, Pinned, free_port, pinned
from bench.scenarios import Scenario
from bench.summary import Record, paired, spread
from bench.system import Candidate, System
from bench.turns import take_turns

RESULT = Path(__file__).parent / "results" / "evidence.json"
TURNS = 9
SECONDS = 3
CONNECTIONS = 64
ALONE, FOLLOWED = "alone", "followed"
#: Seconds in which an auditor has to have read all that was recorded.
_CATCH_UP = 60

Json = dict[str, Any]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, help=f"turns (default {TURNS}); with them nothing is written")
    options = parser.parse_args()
    about, record = machine.describe(), Record()
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        verifying = verify(Path(scratch))
        following = follow(options.turns or TURNS, Path(scratch), record)
    result = {"machine": about, "verify_million_records_per_s": verifying, "follow": following}
    print(json.dumps(result, indent=2))
    if options.turns is None:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if record.voided else 0


def verify(folder: Path) -> Json:
    """Million records a second of one core, as the auditor's own example prints them: verified, and what is in that."""
    command = ["cargo", "--locked", "run", "--release", "--quiet", "--manifest-path", str(MANIFEST)]
    command += ["--package", "proofgate-auditor", "--example", "verify_speed", "--", str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    lines = re.finditer(r"^  (.+): ([\d.]+) \(([\d.]+) to ([\d.]+)\)$", printed, re.MULTILINE)
    return {line[1]: {"median": float(line[2]), "min": float(line[3]), "max": float(line[4])} for line in lines}


def follow(turns: int, folder: Path, record: Record) -> Json:
    """What a worker notices of an auditor that follows it, and what the auditor needs for that."""
    audits: list[Json] = []

    @contextmanager
    def followed(home: Path, source: str) -> Iterator[System]:
        with proofgate_worker.start(home, source) as worker, auditor(home) as (process, address):
            begun = process.cpu_seconds()
            yield worker
            with worker.process.awake():
                audits.append(caught_up(process, address, begun))

    candidates = [
        Candidate(ALONE, "a worker", lambda: "", proofgate_worker.start),
        Candidate(FOLLOWED, "a worker that an auditor follows", lambda: "", followed),
    ]
    with upstream.run(tools.stream_load(), folder, paced=False) as source:
        take_turns(turns, candidates, source.address, folder, plan, record, paced=False)
    rates = {name: record.series("follow", "c64", name, "requests_per_second") for name in (ALONE, FOLLOWED)}
    return {
        "voided": record.voided,
        "requests_per_second": {name: spread(series.values()) for name, series in rates.items()},
        "followed_to_alone": paired(rates[FOLLOWED], rates[ALONE], ratio=True),
        "auditor": audits[0] if audits else None,
    }


def plan(_candidate: Candidate) -> Iterator[Scenario]:
    """A saturated worker."""
    yield Scenario("follow", "c64", scenarios.closed(CONNECTIONS, scenarios.PROMPT_BYTES, SECONDS))


@contextmanager
def auditor(home: Path) -> Iterator[tuple[Pinned, str]]:
    """An auditor of the worker in `home`, and its address."""
    secret, _ = _core.generate_key("proofgate.dev/bench-audit")
    (home / "audit-key").write_text(secret)
    address = f"127.0.0.1:{free_port()}"
    place = home / "proofgate"
    command = [sys.executable, "-m", "proofgate", "auditor", "--new-aggregate", "--listen", address]
    command += ["--ledger", str(place / "ledger"), "--ledger-key", str(place / "verifying-key")]
    command += ["--state", str(home / "audit-state"), "--signing-key", str(home / "audit-key"), "--scrub", "0"]
    with pinned(LOAD_CORE, command, home / "auditor.log", port=int(address.split(":")[1])) as process:
        yield process, address


def caught_up(process: Pinned, address: str, begun: float) -> Json:
    """What the auditor has done and used, once it has read everything. Raises SystemExit when it never has."""
    deadline = time.monotonic() + _CATCH_UP
    while time.monotonic() < deadline:
        status, records = json.loads(ask(address, "/status")), verified(address)
        if records and not status["records_behind"]:
            used = process.cpu_seconds() - begun
            if status["findings"]["by_code"]:
                raise SystemExit(f"the auditor found something: {status['findings']}")
            return {
                "records": records,
                "cpu_us_per_record": round(used / records * 1e6, 3),
                "resident_megabytes": round(process.resident_megabytes(), 1),
            }
        time.sleep(0.5)
    raise SystemExit(f"the auditor was not done after {_CATCH_UP} s")


def verified(address: str) -> int:
    """The records that an auditor says that it has verified."""
    found = re.search(r"^proofgate_auditor_records_verified_total ([\d.e+]+)$", ask(address, "/metrics"), re.MULTILINE)
    return int(float(found[1])) if found else 0


def ask(address: str, path: str) -> str:
    """An answer of the auditor's port."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


if __name__ == "__main__":
    sys.exit(main())
