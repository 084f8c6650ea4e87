"""Kills: only what was in flight in the killed process fails, each with an error, and the tenants are served again."""

from __future__ import annotations

from pathlib import Path

from e2e.kubernetes import Namespace, wait_until
from e2e.load import Report, steady_load
from e2e.operations import Gateway
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import owners

KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


def served_through_the_kill_of(victim: str, program: bytes, fleet: Gateway, folder: Path) -> Report:
    """What the clients saw while a program of a pod was killed and started again; every tenant is served at the end,
    and nothing is lost or sent twice."""
    before = fleet.restarts(victim)
    with steady_load(fleet.namespace, fleet.name, folder, KEYS) as load:
        fleet.kill(victim, program)
        wait_until(lambda: fleet.restarts(victim) > before, 60, f"{victim} is started again")
        fleet.wait_settled(2)
        load.goes_on(100)
    report = load.report
    assert not report.lost and not report.repeated
    last = {one.key: one for one in report.attempts}
    assert all(one.error is None for one in last.values()), "every tenant is served again"
    return report


def test_a_killed_worker_costs_its_own_requests_only(namespace: Namespace, two_workers: str, tmp_path: Path) -> None:
    fleet = Gateway(namespace, two_workers)
    fleet.wait_settled(2)
    victim = f"{two_workers}-worker-0"
    owner = owners(namespace, two_workers, {key: key for key in KEYS})
    report = served_through_the_kill_of(victim, b"serve", fleet, tmp_path)
    others = [one for one in report.failed + report.broken if owner[one.key] != victim]
    assert not others, others[:3]


def test_a_killed_load_balancer_costs_its_own_connections_only(
    namespace: Namespace, two_workers: str, tmp_path: Path
) -> None:
    fleet = Gateway(namespace, two_workers)
    fleet.wait_settled(2)
    victim = fleet.pods("load-balancer")[0]["metadata"]["name"]
    report = served_through_the_kill_of(victim, b"haproxy", fleet, tmp_path)
    # A connection that ended, never an answer that says something wrong.
    assert all(one.error and not one.error[0].isdigit() for one in report.failed), report.failed[:3]
