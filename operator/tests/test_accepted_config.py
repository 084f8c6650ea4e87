"""The file that a worker falls back to changes only when every worker has loaded the newest file."""

from dataclasses import replace
from typing import Any

import pytest

from proofgate_operator.build.worker_config import ACCEPTED_FILE, CONFIG_FILE, text_digest
from proofgate_operator.plan.accepted_config import accepted_config_text
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.reports import WorkerReport
from tests.moving_world import MovingWorld

OLD, NEW = "models: [old]\n", "models: [new]\n"


class Reporting(MovingWorld):
    """Workers that report the file that they run with."""

    files: tuple[str, ...] = ()

    def observed(self) -> ObservedState:
        seen = super().observed()
        told = {
            number: replace(report, file_digest=text_digest(self.files[number]))
            for number, report in seen.worker_reports.items()
            if number < len(self.files)
        }
        return replace(seen, worker_reports={**seen.worker_reports, **told})

    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.world.child("ConfigMap", "demo-config")["data"]
        return found


def test_the_file_that_every_ready_worker_runs_with_is_the_accepted_one() -> None:
    world = Reporting(2)
    text = world.data()[CONFIG_FILE]
    world.reconcile()
    assert ACCEPTED_FILE not in world.data()
    world.files = (text, OLD)
    world.reconcile()
    assert ACCEPTED_FILE not in world.data()
    world.files = (text, text)
    world.reconcile()
    assert world.data() == {CONFIG_FILE: text, ACCEPTED_FILE: text}
    # Workers need not load this file, so it causes no replacement.
    plan = world.plan()
    assert not plan.has_writes and not plan.time_driven


def test_a_file_that_one_worker_refuses_never_becomes_the_accepted_one() -> None:
    world = Reporting(2)
    first = world.data()[CONFIG_FILE]
    world.files = (first, first)
    world.reconcile()
    world.world.manifest["spec"]["timeouts"]["upstreamResponseSeconds"] = 77
    world.reconcile()
    second = world.data()[CONFIG_FILE]
    assert second != first
    for files in ((first, first), (second, first), (first, second)):
        world.files = files
        world.reconcile()
        assert world.data() == {CONFIG_FILE: second, ACCEPTED_FILE: first}
    world.files = (second, second)
    world.reconcile()
    assert world.data()[ACCEPTED_FILE] == second


@pytest.mark.parametrize(
    ("reports", "moves"),
    [
        ({}, False),
        ({0: WorkerReport()}, False),
        ({0: WorkerReport(reachable=False)}, False),
        ({0: WorkerReport(file_digest=text_digest(OLD))}, False),
        ({0: WorkerReport(file_digest=text_digest(NEW))}, True),
    ],
)
def test_a_worker_that_does_not_tell_has_accepted_nothing(
    reports: dict[int, WorkerReport], moves: bool
) -> None:
    world = MovingWorld(1)
    seen = replace(world.observed(), worker_reports=reports)
    assert (accepted_config_text(world.world.gateway, seen, NEW) == NEW) is moves


def test_two_files_that_do_not_fit_together_are_one_file() -> None:
    world = MovingWorld(1)
    large = "#" * 600_000
    seen = replace(world.observed(), worker_reports={0: WorkerReport(file_digest=text_digest(large))})
    assert accepted_config_text(world.world.gateway, seen, large) is None
