"""A plugin of pytest: records each test's outcome and times, and runs tests in another order if asked to.

pytest -p suites.recorder --record=FILE [--shuffle=SEED [--share=0.2]]
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from suites.record import Outcome, Test, append

_PHASES = ("setup", "call", "teardown")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options above."""
    group = parser.getgroup("suites")
    group.addoption("--record", metavar="FILE", help="append each test's outcome and times to FILE")
    group.addoption("--shuffle", metavar="SEED", help="run files, and the tests of each, in an order of this seed")
    group.addoption("--share", type=float, default=1.0, help="with --shuffle: run only this share of the files")


def pytest_configure(config: pytest.Config) -> None:
    """Records in the process that gets the reports of all processes; with pytest-xdist, the controller."""
    record = config.getoption("--record")
    if record and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(record)), "suites-recorder")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffles the files, but keeps the tests of a file together, because they share fixtures that start slowly."""
    seed = config.getoption("--shuffle")
    if not seed:
        return
    order = random.Random(seed)
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    chosen = order.sample(sorted(files), max(1, round(len(files) * config.getoption("--share"))))
    items[:] = [item for path in chosen for item in order.sample(files[path], len(files[path]))]


class Recorder:
    """Combines the reports of a test's phases."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._open: dict[str, dict[str, pytest.TestReport]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Processes the report of a phase; the last phase writes the test."""
        phases = self._open.setdefault(report.nodeid, {})
        phases[report.when or "call"] = report
        # A test whose process ended has one report without a phase, and no further report.
        if report.when in ("setup", "call"):
            return
        del self._open[report.nodeid]
        failed = [one for one in phases.values() if one.failed]
        skipped = any(one.skipped for one in phases.values())
        outcome: Outcome = "failed" if failed else "skipped" if skipped else "passed"
        times = {phase: round(phases[phase].duration, 3) for phase in _PHASES if phase in phases}
        message = "\n".join(one.longreprtext for one in failed)
        append(self._record, Test(report.nodeid, outcome, message=message, **times))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be read fails as a test would."""
        if report.failed:
            append(self._record, Test(report.nodeid or ".", "failed", message=report.longreprtext))
