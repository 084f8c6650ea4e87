"""Budgets move with their tenants: after a scaling, the new worker counts the use on the earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.kubernetes import PATIENCE, Namespace, wait_until
from e2e.load import now, steady_load
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask, records

KEYS = [key_of(tenant) for tenant in TENANTS[:12]]
BUDGET = 2000
#: The approximate reservation for one request, which is also the possible error of one settlement.
REQUEST = 40 + 40
HAND_OVERS = 4
#: One day of UTC in microseconds, the unit of records' times.
DAY = 86_400_000_000


@pytest.fixture
def budgets(namespace: Namespace, two_workers: str) -> Iterator[Gateway]:
    """The gateway with a daily budget for each of twelve tenants, which is removed after the test."""
    manifest = fleet.gateway(two_workers, 2)
    for tenant in manifest["spec"]["tenants"][:12]:
        tenant["limits"] = {"tokensPerDay": BUDGET}
    namespace.apply(manifest)
    found = Gateway(namespace, two_workers)
    found.wait_settled(2)
    yield found
    namespace.apply(fleet.gateway(two_workers, 2))
    wait_until(
        lambda: all(ask(namespace, two_workers, key, "hello") == 200 for key in KEYS),
        PATIENCE,
        "every worker has taken the budgets back",
    )


def test_no_budget_is_overspent_while_workers_come_and_go(
    namespace: Namespace, budgets: Gateway, tmp_path: Path
) -> None:
    began = now() * 1e6
    with steady_load(namespace, budgets.name, tmp_path, KEYS, clients=24) as load:
        for replicas in (3, 2, 3, 2):
            budgets.scale(replicas)
        load.goes_on(600 - load.attempts())
    found = [record for record in records(namespace, budgets.name) if record["ts"] >= began]
    admitted = {record["id"]: record for record in found if record["kind"] == "admission"}
    # By tenant and day, because each day has a whole budget.
    spent: dict[tuple[str, int], int] = {}
    for record in found:
        if record["kind"] == "completion" and admitted[record["id"]]["reserved"] is not None:
            admission = admitted[record["id"]]
            # If the provider does not report the use, the reservation is charged.
            charged = admission["reserved"] if record["charged"] is None else record["charged"]
            bucket = (admission["tenant"], admission["ts"] // DAY)
            spent[bucket] = spent.get(bucket, 0) + charged
    totals = [sum(tokens for (name, _), tokens in spent.items() if name == tenant) for tenant in TENANTS[:12]]
    assert {tenant for tenant, _ in spent} == set(TENANTS[:12])
    assert min(totals) > BUDGET / 2, spent
    over = {bucket: tokens for bucket, tokens in spent.items() if tokens > BUDGET + HAND_OVERS * REQUEST}
    assert not over, over
    assert any(attempt.error and attempt.error.startswith("429") for attempt in load.report.attempts)
