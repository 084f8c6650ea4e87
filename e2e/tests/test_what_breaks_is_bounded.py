"""Kills: only what was in flight in the killed process fails, each with an error, and the tenants are served again."""

from __future__ import annotations

from pathlib import Path

from e2e.kubernetes import Namespace, wait_until
from e2e.load import steady_load
from e2e.operations import Gateway
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import owners

KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


def test_a_killed_worker_costs_its_own_requests_only(namespace: Namespace, two_workers: str, tmp_path: Path) -> None:
    fleet = Gateway(namespace, two_workers)
    fleet.wait_settled(2)
    victim = f"{two_workers}-worker-0"
    owner = owners(namespace, two_workers, {key: key for key in KEYS})
    before = fleet.restarts(victim)
    with steady_load(namespace, two_workers, tmp_path, KEYS) as load:
        fleet.kill(victim, b"serve")
        wait_until(lambda: fleet.restarts(victim) > before, 60, "the worker is started again")
        fleet.wait_settled(2)
        load.goes_on(100)
    report = load.report
    others = [one for one in report.failed + report.broken if owner[one.key] != victim]
    assert not others, others[:3]
    assert not report.lost and not report.repeated
    last = {one.key: one for one in report.attempts}
    assert all(one.error is None for one in last.values()), "every tenant is served again"


def test_a_killed_load_balancer_costs_its_own_connections_only(
    namespace: Namespace, two_workers: str, tmp_path: Path
) -> None:
    fleet = Gateway(namespace, two_workers)
    fleet.wait_settled(2)
    victim = fleet.pods("load-balancer")[0]["metadata"]["name"]
    before = fleet.restarts(victim)
    with steady_load(namespace, two_workers, tmp_path, KEYS) as load:
        fleet.kill(victim, b"haproxy")
        wait_until(lambda: fleet.restarts(victim) > before, 60, "HAProxy is started again")
        fleet.wait_settled(2)
        load.goes_on(100)
    report = load.report
    # A connection that ended, never an answer that says something wrong.
    assert all(one.error and not one.error[0].isdigit() for one in report.failed), report.failed[:3]
    assert not report.lost and not report.repeated
    last = {one.key: one for one in report.attempts}
    assert all(one.error is None for one in last.values()), "every tenant is served again"
