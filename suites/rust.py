"""Builds the Rust tests once and runs every test binary, with a record of each test.

    python -m suites.rust [--package=NAME …] [--record=FILE] [--junit=FILE] [--shuffle=SEED [--share=0.2]] [--build]
                         [TEST …]

A test is named `binary::path::of::the::test`, a documentation test `doc`. Cargo runs the binaries one after the other
and says no times; here two run side by side, so that one with a slow test does not leave a core idle.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from suites.record import Test, append, read, write_junit
from suites.steps import ROOT

#: The product's workspace without its binding, which needs an interpreter to link against.
PRODUCT = ("--manifest-path", str(ROOT / "rust-core" / "Cargo.toml"), "--all-features")
WORKSPACE = (*PRODUCT, "--workspace", "--exclude", "proofgate-pybind")
LOAD_GENERATOR = ("--manifest-path", str(ROOT / "bench" / "stream_load" / "Cargo.toml"))
#: The name under which all documentation tests count together.
DOCUMENTATION = "doc"
#: This switch enables `--report-time` and `--format json` of libtest in a stable toolchain.
_UNSTABLE = {"RUSTC_BOOTSTRAP": "1"}
#: Without a backtrace, a test that panics on purpose does not read all debug information.
_QUIET = {"RUST_BACKTRACE": "0"}


@dataclass(frozen=True)
class Binary:
    """A test binary: its name in records, its file, and the folder of its package, in which Cargo runs it."""

    name: str
    file: Path
    package: Path


class BuildError(Exception):
    """Cargo could not build the tests, and has printed the reason."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 if all tests passed, 1 if one failed, 2 if they could not be built."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--package", action="append", default=[], help="only the tests of this package; repeatable")
    parser.add_argument("--record", type=Path, help="append each test's outcome and time to this file")
    parser.add_argument("--junit", type=Path, help="write a JUnit report to this file")
    parser.add_argument("--shuffle", help="run the tests of each binary in an order of this seed")
    parser.add_argument("--share", type=float, default=1.0, help="with --shuffle: run only this share of the binaries")
    parser.add_argument("--build", action="store_true", help="build the tests and run none")
    parser.add_argument("tests", nargs="*", help="run only these, one after the other")
    given = parser.parse_args(arguments)
    try:
        binaries = list(build(given.package))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    if given.build:
        return 0
    record = given.record or Path(os.devnull)
    if given.tests:
        results = [result for binary in binaries for result in alone(binary, given.tests)]
        if DOCUMENTATION in given.tests:
            results += documentation(given.package)
        for test in results:
            append(record, test)
        return report(results, len(set(given.tests)))
    run_all(chosen(binaries, given.shuffle, given.share), record, given.shuffle)
    if given.share == 1.0:
        for test in documentation(given.package):
            append(record, test)
    found = read(record)
    if given.junit:
        write_junit(given.junit, "rust", found)
    return report(found, 1)


def selections(packages: Sequence[str]) -> list[list[str]]:
    """Cargo's options for some packages, or for all; each list is for one command."""
    if packages:
        return [[*PRODUCT, *(option for package in packages for option in ("--package", package))]]
    return [list(WORKSPACE), list(LOAD_GENERATOR)]


def build(packages: Sequence[str]) -> Iterator[Binary]:
    """Builds and yields the test binaries. Raises BuildError."""
    for selection in selections(packages):
        command = ["cargo", "--locked", "test", "--no-run", "--message-format=json-render-diagnostics", *selection]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                message = json.loads(line)
                if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]:
                    yield binary_of(message)
        if process.returncode:
            raise BuildError(f"the tests do not build: cargo ended with {process.returncode}")


def binary_of(artifact: dict[str, object]) -> Binary:
    """The binary of a Cargo artifact, named by its package, and by its target if that has a different name."""
    package = Path(str(artifact["manifest_path"])).parent
    target = artifact["target"]
    assert isinstance(target, dict)
    library = "lib" in target["kind"]
    name = package.name if library else f"{package.name}/{target['name']}"
    return Binary(name, Path(str(artifact["executable"])), package)


def chosen(binaries: Sequence[Binary], seed: str | None, share: float) -> Sequence[Binary]:
    """The share of the binaries that this seed picks, at least one; all of them without a seed."""
    if seed is None:
        return binaries
    ordered = sorted(binaries, key=lambda binary: binary.name)
    return random.Random(seed).sample(ordered, max(1, round(len(ordered) * share)))


def run_all(binaries: Sequence[Binary], record: Path, shuffle: str | None) -> None:
    """Runs two binaries at a time, each with one thread per core, because many tests wait."""
    side_by_side, threads = 2, os.cpu_count() or 1
    order = ["--shuffle-seed", str(zlib.crc32(shuffle.encode()))] if shuffle else []
    lock = threading.Lock()

    def run(binary: Binary) -> None:
        found = list(results_of(binary, [f"--test-threads={threads}", *order]))
        with lock:
            failed = sum(test.outcome == "failed" for test in found)
            print(f"{binary.name}: {len(found)} tests" + (f", {failed} failed" if failed else ""), flush=True)
            for test in found:
                append(record, test)

    # The largest binaries run first, so that the last one to end is small.
    ordered = sorted(binaries, key=lambda binary: binary.file.stat().st_size, reverse=True)
    with ThreadPoolExecutor(side_by_side) as pool:
        list(pool.map(run, ordered))


def alone(binary: Binary, tests: Sequence[str]) -> Iterator[Test]:
    """Runs the tests that belong to this binary, each in a separate process."""
    prefix = f"{binary.name}::"
    for test in tests:
        if test == binary.name:
            yield from results_of(binary, ["--test-threads=1"])
        elif test.startswith(prefix):
            yield from results_of(binary, ["--exact", test.removeprefix(prefix)])


def results_of(binary: Binary, options: Sequence[str]) -> Iterator[Test]:
    """Runs a binary and yields its tests. A binary that ends without reporting a test fails under its own name."""
    command = [str(binary.file), "-Zunstable-options", "--format=json", "--report-time", *options]
    environment = {**os.environ, **_UNSTABLE, **_QUIET, "CARGO_MANIFEST_DIR": str(binary.package)}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", cwd=binary.package,
        env=environment,
    )  # fmt: skip
    ended = False
    for line in done.stdout.splitlines():
        event = event_of(line)
        if event.get("type") == "suite" and event.get("event") in ("ok", "failed"):
            ended = True
        if event.get("type") == "test" and event.get("event") in ("ok", "failed", "ignored"):
            yield test_of(binary, event)
    if not ended:
        said = (done.stdout + done.stderr)[-4000:]
        yield Test(binary.name, "failed", message=f"{binary.file} ended with {done.returncode}:\n{said}")


def event_of(line: str) -> dict[str, object]:
    """An event line of libtest; empty if a test printed the line."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def test_of(binary: Binary, event: dict[str, object]) -> Test:
    """The test of a libtest event about an ended test."""
    said = str(event.get("stdout", event.get("message", "")))
    name, seconds = f"{binary.name}::{event['name']}", float(str(event.get("exec_time", 0)))
    if event["event"] == "ok":
        return Test(name, "passed", call=round(seconds, 3))
    return Test(name, "skipped" if event["event"] == "ignored" else "failed", call=round(seconds, 3), message=said)


def documentation(packages: Sequence[str]) -> list[Test]:
    """Runs the examples of the documentation, which count as one test."""
    command = ["cargo", "--locked", "test", "--doc", "--quiet", *selections(packages)[0]]
    done = subprocess.run(command, capture_output=True, text=True)
    return [Test(DOCUMENTATION, "failed" if done.returncode else "passed", message=(done.stdout + done.stderr)[-8000:])]


def report(tests: Sequence[Test], expected: int) -> int:
    """Prints the failures and a closing line; returns the exit code."""
    failed = [test for test in tests if test.outcome == "failed"]
    for test in failed:
        print(f"\n---- {test.name}\n{test.message}")
    counts: dict[str, int] = defaultdict(int)
    for test in tests:
        counts[test.outcome] += 1
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if failed or len(tests) < expected else 0


if __name__ == "__main__":
    sys.exit(main())
