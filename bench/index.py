"""Measures an index of many exchanges: the time to make it, its size, and the time to answer queries.

    make bench-index                                of 10^8 exchanges (an hour, 20 GB); writes bench/results/index.json
    python -m bench.index --exchanges 2000000       prints, and writes nothing

The ledger is made and indexed day by day. Each day has a separate log of a million exchanges, which is removed after it
is indexed, because few disks could hold all logs. The figures do not include making the ledger. `proofgate audit index`
runs once for each day, as beside a worker. Each query runs on the whole index in a new process, with different
tenants, ids and days each time; the system's page cache is not controlled.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot

from bench import machine
from bench.ledger import MANIFEST, ROOT
from bench.summary import spread

RESULT = Path(__file__).parent / "results" / "index.json"
EXCHANGES = 100_000_000
A_DAY = 1_000_000
#: Number of times that each query runs.
TIMES = 15
PAGE = 50

Json = dict[str, Any]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--exchanges", type=int, default=EXCHANGES, metavar="N", help=f"at least {A_DAY} (default {EXCHANGES})"
    )
    parser.add_argument("--folder", type=Path, help="where all is made (default: the temporary folder)")
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--question", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        print(json.dumps(ask(options.ask, options.question)))
        return 0
    if options.exchanges < A_DAY:
        parser.error(f"--exchanges is at least {A_DAY}")
    about, days = machine.describe(), options.exchanges // A_DAY
    with tempfile.TemporaryDirectory(prefix="proofgate-index-", dir=options.folder) as folder:
        made = make(Path(folder), days)
        results = {"machine": about, "exchanges": days * A_DAY, "days": days, **made, "questions": {}}
        results["questions"] = questions(Path(folder) / "index", days)
    print(json.dumps(results, indent=2))
    if days * A_DAY == EXCHANGES:
        RESULT.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def make(folder: Path, days: int) -> Json:
    """Makes the ledger and its index, one day at a time."""
    ledger, index = folder / "ledger", folder / "index"
    build = ["cargo", "--locked", "build", "--release", "--quiet", "--manifest-path", str(MANIFEST)]
    subprocess.run([*build, "--package", "proofgate-index", "--example", "index_speed"], check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "rust-core" / "target"))
    maker = target / "release" / "examples" / "index_speed"
    seconds = cpu = memory = 0.0
    for day in range(days):
        place = ["--exchanges", A_DAY, "--from", day, "--shard", day]
        subprocess.run([maker, "make", ledger, *map(str, place)], check=True)
        command = [
            sys.executable,
            "-m",
            "proofgate",
            "audit",
            "index",
            "--ledger",
            ledger,
            "--index",
            index,
            "--same-volume",
        ]
        command += ["--ledger-key", ledger.with_suffix(".key")]
        begun = time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds += time.monotonic() - begun
        if process.returncode:
            raise SystemExit(f"proofgate audit index ended with {process.returncode}")
        cpu, memory = cpu + used.ru_utime + used.ru_stime, max(memory, used.ru_maxrss / 1024)
        shutil.rmtree(ledger / str(day))
        print(f"{day + 1} of {days} days, {seconds:.0f} s", file=sys.stderr, flush=True)
    size = sum(path.stat().st_size for path in index.iterdir())
    return {
        "build_s": round(seconds, 1),
        "build_cpu_s": round(cpu, 1),
        "build_resident_megabytes": round(memory, 1),
        "bytes_per_exchange": round(size / (days * A_DAY), 1),
    }


def questions(index: Path, days: int) -> Json:
    """Milliseconds to the answer of each kind of query, and the memory of the querying process."""
    chance, found = random.Random(1), {}
    for name in kinds(chance, days):
        times, rows, memory = [], 0, 0.0
        for _ in range(TIMES):
            asked = json.dumps(kinds(chance, days)[name])
            command = [sys.executable, "-m", "bench.index", "--ask", str(index), "--question", asked]
            answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
            times.append(answer["ms"])
            rows, memory = answer["rows"], max(memory, answer["resident_megabytes"])
        found[name] = {"ms": spread(times), "rows": rows, "resident_megabytes": memory}
        print(f"{name}: {found[name]['ms']}", file=sys.stderr, flush=True)
    return found


def kinds(chance: random.Random, days: int) -> dict[str, dict[str, Any]]:
    """The queries, with different values each time."""
    day = chance.randrange(days)
    tenant = f"tenant-{chance.randrange(50)}"
    begin = _START + day * _DAY
    number = chance.randrange(A_DAY)
    milliseconds = (begin + number * (_DAY // A_DAY)) // 1000
    own = f"req_{milliseconds:012x}7{number & 0xFFF:03x}8{number:015x}"
    return {
        "an id": {"id": own},
        "an id that nobody has": {"id": own[:-6] + "ffffff"},
        "an id of another's, that nobody has": {"id": "trace-1"},
        "the newest of all": {"newest": True},
        "a tenant's newest": {"tenant": tenant, "newest": True},
        "a tenant's in a week": {"tenant": tenant, "since": begin, "until": begin + 7 * _DAY},
        "a tenant and a rule": {"tenant": tenant, "rule": "pii-card", "newest": True},
        "a tenant and a model": {"tenant": tenant, "model": f"model-{chance.randrange(12)}"},
        "a tenant, and a model that another has to itself": {
            "tenant": f"tenant-{chance.randrange(1, 50)}",
            "model": "own",
        },
        "a model": {"model": f"model-{chance.randrange(12)}"},
        "a model that is rare": {"model": "rare", "newest": True},
        "a model that nobody asked for": {"model": "nothing"},
        "a provider": {"provider": "anthropic", "newest": True},
        "a key": {"key": f"{chance.randrange(50) * 7 + chance.randrange(3):08x}"},
        "a rule": {"rule": "pii-card"},
        "a rule that is rare": {"rule": "rare", "newest": True},
        "a tenant, and a rule that is rare": {"tenant": tenant, "rule": "rare", "newest": True},
        "a tenant, redacted": {"tenant": tenant, "verdict": "redacted", "newest": True},
        "a tenant, and an outcome that there is not": {"tenant": tenant, "outcome": "aborted"},
        "redacted": {"verdict": "redacted", "newest": True},
        "blocked, of which there is none": {"verdict": "blocked"},
        "open, of which there is none": {"outcome": "open"},
        "an outcome that there is not": {"outcome": "aborted"},
        "dear": {"min_cost": 9_000_000},
        "as dear as few": {"min_cost": 40_000_000_000},
        "dearer than any": {"min_cost": 90_000_000_000},
        "a tenant, and as dear as few": {"tenant": tenant, "min_cost": 40_000_000_000},
    }


#: 2025-01-01, where the example begins; microseconds.
_START = 1_735_689_600_000_000
_DAY = 86_400_000_000


def ask(index: Path, asked: Json) -> Json:
    """Runs a query once on an index that is not open."""
    begun = time.perf_counter()
    with IndexSnapshot(index) as open_index:
        page = open_index.page(Filter(**asked), PAGE)
    took = time.perf_counter() - begun
    with open("/proc/self/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return {"ms": round(took * 1000, 2), "rows": len(page.rows), "resident_megabytes": round(resident / 1024, 1)}


if __name__ == "__main__":
    sys.exit(main())
