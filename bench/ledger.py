"""Measures the cost of a restart, a proof, a check, a record and a log rotation, by the size of the ledger.

python -m bench.ledger              up to 10^8 records (60 GB, an hour); writes bench/results/ledger.json
python -m bench.ledger --most 7     up to 10^7 records (6 GB, 5 minutes); writes the same
python -m bench.ledger --most 6     up to 10^6 records (a minute); prints, and writes nothing
python -m bench.ledger --only record   the cost of one record (a minute); adds it to bench/results/ledger.json

The engine's own writer and a small ledger thread make every shard, with 64 exchanges in flight and logs of 1 GiB. A
restart is measured with cold caches if the system lets them be dropped. Two controls in Python only hash the tree: one
thread, and a pool of threads.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import machine

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "ledger.json"
MANIFEST = ROOT / "rust-core" / "Cargo.toml"
FEWEST, MOST = 5, 8
"""Powers of ten."""
WRITTEN_FROM = 7
"""The minimum power of ten at which a run writes its results."""
LOG_RECORDS = 2_200_000
"""About 1 GiB, the default of `ledger.rotation.bytes`."""
ENDINGS = ("sealed", "killed")
"""The ways in which a worker can leave its last log."""
ROUNDS = 5
CONTROL_LEAVES = 300_000

Json = dict[str, Any]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=MOST, metavar="POWER", help=f"of ten, 5 to {MOST} (default {MOST})")
    parser.add_argument("--folder", type=Path, help="where the shards are made (default: the temporary folder)")
    parser.add_argument("--only", choices=["record"], help="measure one part, and keep the rest of the last results")
    options = parser.parse_args()
    if not FEWEST <= options.most <= MOST:
        parser.error(f"--most is {FEWEST} to {MOST}")
    about = machine.describe()
    if options.only == "record":
        return one_record(about, options.folder)
    shard, throughput = build("shard"), build("throughput")
    with tempfile.TemporaryDirectory(prefix="proofgate-ledger-", dir=options.folder) as folder:
        measured = measure(shard, Path(folder), options.most)
        hot = hot_path(throughput, Path(folder), about)
    trees = {"engine": hot.pop("engine_mmr_per_s"), **controls()}
    results = {"machine": about, **measured, **hot, "mmr_per_s": trees}
    print(json.dumps(results, indent=2))
    if options.most >= WRITTEN_FROM:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def one_record(about: Json, parent: Path | None) -> int:
    """Measures the cost of one record, and adds it to the last results and their page; returns the exit code."""
    from bench.report import pages  # which reads this module, too

    throughput = build("throughput")
    with tempfile.TemporaryDirectory(prefix="proofgate-ledger-", dir=parent) as folder:
        hot = hot_path(throughput, Path(folder), about)
    del hot["engine_mmr_per_s"]
    print(json.dumps(hot, indent=2))
    results = json.loads(RESULTS.read_text()) | hot
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    pages.write()
    return 0


def build(example: str) -> Path:
    """Compiles an example of the storage engine as releases are compiled; returns its path."""
    print(f"building {example}", file=sys.stderr, flush=True)
    command = ["cargo", "--locked", "build", "--release", "--quiet", "--manifest-path", str(MANIFEST)]
    subprocess.run([*command, "--package", "proofgate-wal", "--example", example], check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "rust-core" / "target"))
    return target / "release" / "examples" / example


def run(program: Path, *arguments: object) -> Json:
    output = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    answer: Json = json.loads(output)
    return answer


def measure(shard: Path, folder: Path, most: int) -> Json:
    """Restarts, proofs and checks by the number of records, and what a change of logs costs."""
    figures = ("restart_s", "restart_records_read", "proof_ms", "export_ms", "fsck_records_per_s")
    measured: Json = {figure: {ending: {} for ending in ENDINGS} for figure in figures} | {"append_per_s": {}}
    for power in range(FEWEST, most + 1):
        records = 10**power
        for ending in ENDINGS:
            print(f"10^{power} records, {ending}", file=sys.stderr, flush=True)
            place = folder / f"{power}-{ending}"
            options = ["--sealed"] if ending == "sealed" else []
            made = run(shard, "make", place, "--records", records, "--log-records", LOG_RECORDS, *options)
            if ending == "killed":
                measured["append_per_s"][records] = made["append_per_s"]
            drop_caches()
            # The first restart finds the remaining log; later restarts find a new log.
            begun = run(shard, "restart", place)
            # By now, a checkpoint also covers the last records of a killed log.
            found = {
                "restart_s": begun["seconds"],
                "restart_records_read": begun["records_read"],
                "proof_ms": run(shard, "prove", place, "--records", records),
                "export_ms": run(shard, "export", place)["milliseconds"],
                "fsck_records_per_s": run(shard, "check", place)["records_per_s"],
            }
            for figure, value in found.items():
                measured[figure][ending][records] = value
            shutil.rmtree(place)
    rotations = [run(shard, "rotate", folder / f"rotation-{number}") for number in range(ROUNDS)]
    return measured | {"rotation_stall_us": spread([rotation["rotation_stall_us"] for rotation in rotations])}


def hot_path(throughput: Path, folder: Path, about: Json) -> Json:
    """The cost and latency of one record, and the growth rate of the tree, from the engine's own example."""
    printed = subprocess.run([throughput, folder], check=True, capture_output=True, text=True).stdout
    tree = re.search(r"^MMR pushes with node output: ([\d.]+) M/s", printed, re.MULTILINE)
    return {
        **of_one_record(printed),
        "record_machine": about,
        "engine_mmr_per_s": float(tree[1]) * 1e6 if tree else 0.0,
    }


def of_one_record(printed: str) -> Json:
    """From what the example prints: `append_us`, what a record costs the thread that appends it, by who works beside;
    `record_us`, how long until it is handed over, by durability. Microseconds."""
    number = r"([\d.]+) \(([\d.]+) to ([\d.]+)\)"
    costs: Json = {"append_us": {}, "record_us": {}}
    for line in re.finditer(rf"^  (append|record), (.+): p50 {number}, p99 {number}$", printed, re.MULTILINE):
        what, name, *values = line.groups()
        median50, least50, most50, median99, least99, most99 = map(float, values)
        costs[f"{what}_us"][name] = {
            "p50": {"median": median50, "min": least50, "max": most50},
            "p99": {"median": median99, "min": least99, "max": most99},
        }
    return costs


def drop_caches() -> None:
    """Forgets what the page cache holds, where the system allows it."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        print("the page cache cannot be dropped here: restarts are warm", file=sys.stderr)


def spread(values: list[float]) -> Json:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def push_all(leaves: list[bytes]) -> int:
    """Appends leaves to a Merkle Mountain Range (RFC 6962 section 2.1 hashing); returns how many."""
    peaks: list[tuple[int, bytes]] = []
    for leaf in leaves:
        height, node = 0, hashlib.sha256(b"\0" + leaf).digest()
        while peaks and peaks[-1][0] == height:
            node = hashlib.sha256(b"\1" + peaks.pop()[1] + node).digest()
            height += 1
        peaks.append((height, node))
    return len(leaves)


def controls() -> Json:
    """Leaves per second of the same tree in Python: one thread, and a pool of two."""
    leaves = [number.to_bytes(32, "big") for number in range(CONTROL_LEAVES)]

    def rate(work: Any) -> Json:
        rates = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            work()
            rates.append(CONTROL_LEAVES / (time.perf_counter() - start))
        return spread(rates)

    def pooled() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(push_all, (leaves[0::2], leaves[1::2])))

    return {"python": rate(lambda: push_all(leaves)), "python_pool": rate(pooled)}


if __name__ == "__main__":
    sys.exit(main())
