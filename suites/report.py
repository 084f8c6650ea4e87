"""The report at the end of a run: times, failures and flaky tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from suites.run import Result, Run, clock

#: The number of slowest tests that are shown.
SLOWEST = 25


def finish(run: Run, folder: Path) -> int:
    """Prints the report, keeps it in the folder, and returns the exit code."""
    results = list(run.results.values())
    begun = [result for result in results if result.code is not None]
    print(f"\n== where the time went; kept in {folder}: times.json, junit/, logs/")
    print("\n".join(table(begun)))
    print("\n".join(sums(begun, run.seconds)))
    print(f"\n== the slowest tests (fixtures + test, in seconds)\n{chr(10).join(slowest(begun))}")
    keep(begun, run.seconds, folder)
    run.show_failures()
    print()
    for result in results:
        if result.blocked_by:
            print(f"not run: {result.step.name}, because {result.blocked_by} failed")
        for name in result.failed:
            print(f"failed: {result.step.name}: {name}")
    flaky = [f"{result.step.name}: {name}" for result in results for name in result.flaky]
    (folder / "flaky.txt").write_text("".join(f"{name}\n" for name in flaky), encoding="utf-8")
    for name in flaky:
        print(f"flaky: {name}")
    lost = sum(len(result.failed) for result in results)
    # A build or a check counts as one.
    passed = sum(len(result.tests) or 1 for result in begun) - lost
    print(f"{passed} passed, {lost} failed")
    return 0 if all(result.passed for result in results) else 1


def table(results: Iterable[Result]) -> list[str]:
    """A line for each step, the longest first."""
    lines = [f"   {'step':24} {'kind':6} {'wall':>6} {'CPU':>6} {'tests':>6} {'fixtures':>9} {'in tests':>9}"]
    for result in sorted(results, key=lambda result: -result.seconds):
        fixtures = sum(test.setup + test.teardown for test in result.tests)
        inside = sum(test.call for test in result.tests)
        times = f"{clock(fixtures):>9} {clock(inside):>9}" if result.tests else ""
        count = str(len(result.tests) or "")
        lines.append(
            f"   {result.step.name:24} {result.step.kind:6} {clock(result.seconds):>6} {clock(result.cpu):>6} "
            f"{count:>6} {times}".rstrip()
        )
    return lines


def sums(results: Iterable[Result], seconds: float) -> list[str]:
    """Seconds of each kind of step: builds, checks, and the computing and waiting times of tests."""
    listed = list(results)
    lines = []
    for kind in ("build", "check", "tests"):
        of_kind = [result for result in listed if result.step.kind == kind]
        wall, cpu = sum(result.seconds for result in of_kind), sum(result.cpu for result in of_kind)
        lines.append(f"   {kind:6} {clock(wall)} one after the other, {clock(cpu)} of CPU")
    lines.append(f"   all    {clock(seconds)}")
    return lines


def slowest(results: Iterable[Result]) -> list[str]:
    """A line for each of the slowest tests."""
    tests = [(test, result.step.name) for result in results for test in result.tests]
    tests.sort(key=lambda pair: -pair[0].seconds)
    return [
        f"   {test.setup + test.teardown:6.1f} + {test.call:6.1f}  {suite}: {test.name}"
        for test, suite in tests[:SLOWEST]
    ]


def keep(results: Sequence[Result], seconds: float, folder: Path) -> None:
    """Writes times.json: steps, and every test with its times."""
    steps = [
        {
            "name": result.step.name,
            "kind": result.step.kind,
            "seconds": round(result.seconds, 1),
            "cpuSeconds": round(result.cpu, 1),
            "failed": result.failed,
            "flaky": result.flaky,
            "tests": {test.name: [test.setup, test.call, test.teardown] for test in result.tests},
        }
        for result in results
    ]
    document = {"seconds": round(seconds, 1), "steps": steps}
    (folder / "times.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
