"""Tenants' usage of their limits, as Prometheus metrics."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from proofgate import limit_metrics
from proofgate.limit_kinds import LIMIT_KINDS, LimitKind
from proofgate.limit_metrics import LimitMetrics

USED = {
    "tenants": [
        {
            "tenant": 'team/"a"',
            "requests_per_minute": {"used": 3, "limit": 10},
            "nanodollars_per_month": {"used": 1_500_000_001, "limit": 2_000_000_000},
            "a_kind_to_come": {"used": 1, "limit": 2},
            "tokens_per_day": None,
        },
        {"tenant": "idle", "requests_per_minute": {"used": 0, "limit": 10}},
    ],
    "more": 0,
    "namespaces": [{"namespace": "team", "plan": "small", "tokens_per_day": {"used": 5, "limit": 4}}],
    "more_namespaces": 0,
}


def samples(text: str) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(text + "# EOF\n")  # type: ignore[no-untyped-call]
    return {
        (sample.name.removeprefix("proofgate_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def asked(document: Any) -> str:
    return asyncio.run(LimitMetrics(lambda _: json.dumps(document), 10).render())


def test_every_limit_of_which_something_is_used_has_what_is_used_and_allowed_in_its_own_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A new kind needs only a row in the table.
    new = LimitKind("a_kind_to_come", "a_kind_to_come", "a_kind_to_come_exceeded", "requests", "day")
    monkeypatch.setattr(limit_metrics, "LIMIT_KINDS", (*LIMIT_KINDS, new))
    tenant = 'team/"a"'
    assert samples(asked(USED)) == {
        ("limits_read",): 1,
        ("limit_used", tenant, "requestsPerMinute"): 3,
        ("limit_maximum", tenant, "requestsPerMinute"): 10,
        ("limit_used", tenant, "dollarsPerMonth"): 1.500000001,
        ("limit_maximum", tenant, "dollarsPerMonth"): 2,
        ("limit_used", tenant, "aKindToCome"): 1,
        ("limit_maximum", tenant, "aKindToCome"): 2,
        ("shared_limit_used", "team", "small", "tokensPerDay"): 5,
        ("shared_limit_maximum", "team", "small", "tokensPerDay"): 4,
    }


def test_no_more_tenants_are_asked_for_than_may_have_series() -> None:
    wanted: list[int] = []

    def limit_use(most: int) -> str:
        wanted.append(most)
        return json.dumps({"tenants": [], "namespaces": []})

    asyncio.run(LimitMetrics(limit_use, 7).render())
    assert wanted == [7]


def test_a_core_that_waits_for_its_volume_does_not_hold_up_the_other_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limit_metrics, "TIMEOUT_SECONDS", 0.01)
    goes_on, calls = threading.Event(), []

    def limit_use(_: int) -> str:
        calls.append(1)
        goes_on.wait()
        return json.dumps(USED)

    async def scrape() -> tuple[str, str, str]:
        metrics = LimitMetrics(limit_use, 10)
        late = await metrics.render(), await metrics.render()
        goes_on.set()
        monkeypatch.setattr(limit_metrics, "TIMEOUT_SECONDS", 60)
        return *late, await metrics.render()

    first, second, third = map(samples, asyncio.run(scrape()))
    assert first == second == {("limits_read",): 0}
    assert third["limits_read",] == 1
    assert ("limit_used", 'team/"a"', "requestsPerMinute") in third
    assert len(calls) == 2, "only one call to the core runs at a time"


@pytest.mark.parametrize("is_finished", [True, False], ids=["finished between scrapes", "still running"])
def test_a_scrape_never_shows_what_an_earlier_one_asked_for(
    monkeypatch: pytest.MonkeyPatch, is_finished: bool
) -> None:
    goes_on, calls = threading.Event(), []

    def limit_use(_: int) -> str:
        calls.append(1)
        number = len(calls)
        goes_on.wait()
        return json.dumps({"tenants": [{"tenant": "a", "requests_per_day": {"used": number, "limit": 9}}]})

    async def scrape() -> str:
        metrics = LimitMetrics(limit_use, 10)
        monkeypatch.setattr(limit_metrics, "TIMEOUT_SECONDS", 0.01)
        await metrics.render()
        monkeypatch.setattr(limit_metrics, "TIMEOUT_SECONDS", 60)
        late = asyncio.create_task(metrics.render()) if not is_finished else None
        await asyncio.sleep(0)
        goes_on.set()
        if late is not None:
            return await late
        earlier = metrics._asked
        assert earlier is not None
        await earlier
        return await metrics.render()

    assert samples(asyncio.run(scrape()))["limit_used", "a", "requestsPerDay"] == 2


def test_a_core_that_fails_has_no_series_of_limits() -> None:
    def limit_use(_: int) -> str:
        raise ValueError("stopped")

    assert samples(asyncio.run(LimitMetrics(limit_use, 10).render())) == {("limits_read",): 0}
