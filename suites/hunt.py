"""Finds flaky tests: runs them in random orders, beside a busy core and disk, and with a slow clock."""

from __future__ import annotations

import random
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from suites.catalogue import BY_NAME, with_needed
from suites.load import busy
from suites.run import Result, Run
from suites.steps import Pytest, RustTests, Step

#: The suites of a hunt by default: all except the cluster, whose tests have a fixed order.
SUITES = ("rust", "gateway", "operator", "tools", "worker", "clients", "control-plane", "haproxy-lts")
#: Every this many rounds, the clock runs at half speed (libfaketime), if that is installed.
SLOW_CLOCK_EVERY = 4
_FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
#: For Rust's tests, and the time of day alone: libfaketime 0.9.10 never wakes who waits on a condition by a faked
#: monotonic clock, and breaks the absolute sleeps of Python from 3.11 on.
_SLOW_CLOCK = {
    "LD_PRELOAD": _FAKETIME,
    "FAKETIME": "+0 x0.5",
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "DONT_FAKE_MONOTONIC": "1",
}


@dataclass(frozen=True)
class Shuffled:
    """A suite in a random order, with a share of its files."""

    suite: Pytest | RustTests
    seed: str
    share: float

    @property
    def folder(self) -> Path:
        return self.suite.folder

    def command(self, record: Path, junit: Path) -> list[str]:
        seed = number_of(self.seed)
        return [
            *self.suite.command(record, junit),
            f"--shuffle={self.seed}",
            f"--share={self.share}",
            *([f"--hypothesis-seed={seed}"] if isinstance(self.suite, Pytest) else []),
        ]

    def again(self, tests: Sequence[str], record: Path) -> list[str] | None:
        return self.suite.again(tests, record)


def hunt(rounds: int, suites: Sequence[str], share: float, seed: str, folder: Path) -> int:
    """Runs the rounds and prints every test that failed in one; returns the exit code, 1 if there was any."""
    needed = [step for step in with_needed(suites) if step.name not in suites]
    print(f"== built beforehand: {', '.join(step.name for step in needed)}")
    built = Run(needed, folder / "built")
    built.go()
    if not all(result.passed for result in built.results.values()):
        built.show_failures()
        return 1
    found: dict[str, list[str]] = {}
    ran = 0
    for number in range(1, rounds + 1):
        own_seed = f"{seed}-{number}"
        slow = number % SLOW_CLOCK_EVERY == 0 and Path(_FAKETIME).exists()
        print(f"\n== round {number} of {rounds}: seed {own_seed}{', slow clock' if slow else ''}", flush=True)
        run = Run(
            [shuffled(BY_NAME[name], own_seed, share, slow) for name in order_of(suites, own_seed)], folder / "round"
        )
        with busy():
            run.go()
        for result in run.results.values():
            ran += len(result.tests)
            for name in unlucky(result):
                found.setdefault(name, []).append(own_seed)
                keep(folder, result, own_seed)
    print(f"\n== {rounds} rounds, {ran} tests run, {len(found)} of them failed at least once")
    for name, seeds in sorted(found.items()):
        print(f"flaky: {name} (seed {', '.join(seeds)})")
    return 1 if found else 0


def order_of(suites: Sequence[str], seed: str) -> list[str]:
    """The suites in an order of this seed."""
    return random.Random(seed).sample(list(suites), len(suites))


def shuffled(step: Step, seed: str, share: float, slow_clock: bool) -> Step:
    """A suite in the form for a round, without its requirements, which are met."""
    assert isinstance(step.action, Pytest | RustTests)
    clock: Mapping[str, str] = _SLOW_CLOCK if slow_clock and isinstance(step.action, RustTests) else {}
    environment = {**step.environment, **clock, "PROPTEST_RNG_SEED": str(number_of(seed))}
    return replace(step, action=Shuffled(step.action, seed, share), needs=(), environment=environment)


def number_of(seed: str) -> int:
    """A seed for programs that take a number of 32 bits."""
    return zlib.crc32(seed.encode())


def unlucky(result: Result) -> list[str]:
    """The tests of a suite that failed in a round, whether they passed again or not."""
    return [f"{result.step.name}: {name}" for name in (*result.flaky, *result.failed)]


def keep(folder: Path, result: Result, seed: str) -> None:
    """Keeps the output of a suite in which a test failed."""
    kept = folder / "found"
    kept.mkdir(exist_ok=True)
    shutil.copy(folder / "round" / "logs" / f"{result.step.name}.log", kept / f"{result.step.name}-{seed}.log")
