"""Kills: only the requests in the killed process fail, each with an error, and all tenants are served again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.kubernetes import PATIENCE, Namespace, wait_until
from e2e.load import Report, steady_load
from e2e.operations import Gateway
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import owners, records

KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


def served_through_the_kill_of(victim: str, program: bytes, fleet: Gateway, folder: Path) -> Report:
    """Kills a program of a pod under load and returns the clients' report. At the end every tenant is served, and
    nothing is lost or sent twice.
    """
    before = fleet.restarts(victim)
    with steady_load(fleet.namespace, fleet.name, folder, KEYS) as load:
        load.goes_on(150)
        fleet.kill(victim, program)
        wait_until(lambda: fleet.restarts(victim) > before, PATIENCE, f"{victim} is started again")
        fleet.wait_settled(2)
        load.goes_on(100)
    report = load.report
    assert len(report.whole) > 250
    assert not report.lost and not report.repeated
    last = {one.key: one for one in report.attempts}
    assert all(one.error is None for one in last.values()), "every tenant is served again"
    return report


@dataclass(frozen=True)
class Kill:
    """A worker that was killed under load: its name, the worker of each key, and the clients' report."""

    worker: str
    owner: dict[str, str]
    report: Report


@pytest.fixture(scope="module")
def kill(namespace: Namespace, gateway: str, tmp_path_factory: pytest.TempPathFactory) -> Kill:
    """A kill of the first worker under load."""
    victim = f"{gateway}-worker-0"
    owner = owners(namespace, gateway, {key: key for key in KEYS})
    fleet = Gateway(namespace, gateway)
    return Kill(victim, owner, served_through_the_kill_of(victim, b"serve", fleet, tmp_path_factory.mktemp("kill")))


def test_a_killed_worker_costs_its_own_requests_only(kill: Kill) -> None:
    others = [one for one in kill.report.failed + kill.report.broken if kill.owner[one.key] != kill.worker]
    assert not others, others[:3]


def test_a_worker_killed_under_load_loses_no_record_of_a_completed_answer(
    namespace: Namespace, gateway: str, kill: Kill
) -> None:
    assert not kill.report.lost
    written = records(namespace, gateway)
    completions = {record["id"] for record in written if record["kind"] == "completion"}
    admissions = {record["id"] for record in written if record["kind"] == "admission"}
    aborted = {record["id"] for record in written if record["kind"] == "aborted"}
    assert admissions == completions | aborted


def test_a_killed_load_balancer_costs_its_own_connections_only(
    namespace: Namespace, two_workers: str, tmp_path: Path
) -> None:
    fleet = Gateway(namespace, two_workers)
    victim = fleet.pods("load-balancer")[0]["metadata"]["name"]
    report = served_through_the_kill_of(victim, b"haproxy", fleet, tmp_path)
    # Connections may end, but no answer may have an error status.
    assert all(one.error and not one.error[0].isdigit() for one in report.failed), report.failed[:3]
