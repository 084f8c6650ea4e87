"""Budgets in money, end to end: exact under concurrency and after a kill, and reported to holders of a key."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from anthropic import Anthropic
from anthropic import RateLimitError as AnthropicRateLimitError
from openai import OpenAI, RateLimitError
from proofgate import _core

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway, not_over_midnight
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, error_of, send, status_of

NANODOLLARS = 10**9
OTHER_KEY = "acme-other-key-0123456789abcdef"


@pytest.fixture(autouse=True)
def one_day() -> None:
    not_over_midnight(60)


def budgeted(**terms: Any) -> dict[str, Any]:
    """Settings with a price of ten microdollars for a token. `globex` has no limits."""
    hashes = {tenant: [_core.hash_api_key(key)] for tenant, key in KEYS.items()}
    hashes["acme"].append(_core.hash_api_key(OTHER_KEY))
    return {
        "models": [{"name": MODEL, "provider": "mock"}, {"name": "small", "provider": "mock"}],
        "prices": [{"model": MODEL, "effectiveFrom": "2026-01-01", "input": "10", "output": "10"}],
        "tenants": [
            {"name": tenant, "keyHashes": hashes[tenant], **(terms if tenant == "acme" else {})} for tenant in KEYS
        ],
    }


def ask(gateway: LocalGateway, tokens: int = 8, key: str = KEYS["acme"], model: str = MODEL) -> bytes:
    messages = [{"role": "user", "content": f"mock:tokens={tokens}"}]
    body = json.dumps({"model": model, "max_tokens": tokens, "messages": messages}).encode()
    return send(gateway.address, chat_request(body, key))


def request(method: str, path: str, key: str) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: gw\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\r\n"
    return head.encode()


def spent(gateway: LocalGateway) -> int:
    return sum(record.get("cost_nanodollars", 0) for record in gateway.records() if record["kind"] == "completion")


def usage(gateway: LocalGateway, key: str = KEYS["acme"]) -> Any:
    answer = send(gateway.address, request("GET", "/v1/usage", key))
    assert status_of(answer) == 200
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def test_sixty_four_clients_never_overspend_a_budget_in_money(folder: Path) -> None:
    # The budget pays for 2000 tokens.
    with local_gateway(folder, settings=budgeted(limits={"dollarsPerDay": "0.02"})) as gateway:
        with ThreadPoolExecutor(64) as clients:
            statuses = [status_of(answer) for answer in clients.map(lambda _: ask(gateway, 20), range(256))]
        # Use the rest of the budget that requests in flight have released.
        while status_of(ask(gateway, 20)) == 200:
            pass
        cost = spent(gateway)
        told = usage(gateway)["tenant"]["dollars_per_day"]
    budget = 2 * NANODOLLARS // 100
    assert set(statuses) == {200, 429}
    # Each request reserves one token for each of its about 100 bytes, and 20 more, so the rest is less than one
    # reservation.
    assert budget - 160 * 10_000 < cost <= budget
    assert Decimal(told["used"]) * NANODOLLARS == cost
    assert Decimal(told["remaining"]) == Decimal(told["limit"]) - Decimal(told["used"])


@pytest.mark.parametrize("span", ["dollarsPerDay", "dollarsPerMonth"])
def test_a_budget_in_money_is_exact_across_a_kill(folder: Path, span: str) -> None:
    with local_gateway(folder, settings=budgeted(limits={span: "0.006"})) as gateway:
        before = [status_of(ask(gateway, 20)) for _ in range(8)]
        assert gateway.worker is not None
        gateway.worker.stop(SIGKILL)
        gateway.start_worker()
        kept = spent(gateway)
        field = {"dollarsPerDay": "dollars_per_day", "dollarsPerMonth": "dollars_per_month"}[span]
        assert Decimal(usage(gateway)["tenant"][field]["used"]) * NANODOLLARS == kept > 0
        after = [status_of(ask(gateway, 20)) for _ in range(40)]
        cost = spent(gateway)
    budget = 6 * NANODOLLARS // 1000
    assert set(before) == {200}
    assert set(after) == {200, 429}
    assert budget - 160 * 10_000 < cost <= budget


@pytest.mark.parametrize("name", [MODEL, "gpt-*"])
def test_budgets_of_a_key_and_of_a_model_are_kept_across_a_kill(folder: Path, name: str) -> None:
    terms: dict[str, Any] = {
        "keyLimits": {"dollarsPerDay": "0.003"},
        "modelBudgets": [{"model": name, "dollarsPerMonth": "0.0045"}],
    }
    settings = budgeted(**terms)
    settings["models"][0]["name"] = name
    with local_gateway(folder, settings=settings) as gateway:
        while status_of(ask(gateway)) == 200:
            pass
        assert spent(gateway) <= 3 * NANODOLLARS // 1000
        assert gateway.worker is not None
        gateway.worker.stop(SIGKILL)
        gateway.start_worker()
        assert b"dollars_per_day_exceeded" in ask(gateway)
        while status_of(answer := ask(gateway, key=OTHER_KEY)) == 200:
            pass
        assert b"dollars_per_month_exceeded" in answer
        assert b"model's budget of 0.0045 dollars per month" in answer
        cost = spent(gateway)
        told = usage(gateway, OTHER_KEY)
    assert 3_000_000 < cost <= 4_500_000
    assert Decimal(told["models"][name]["dollars_per_month"]["used"]) * NANODOLLARS == cost


def test_what_was_set_aside_for_a_request_in_flight_stands_after_a_kill(folder: Path) -> None:
    with local_gateway(folder, settings=budgeted(limits={"dollarsPerMonth": "1"})) as gateway:
        messages = [{"role": "user", "content": "mock:hang"}]
        body = json.dumps({"model": MODEL, "max_tokens": 500, "messages": messages}).encode()
        host, port = gateway.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(chat_request(body, KEYS["acme"]))
            wait_until(lambda: gateway.upstream_stats()["started"] == 1, PATIENCE, "the upstream has the request")
            assert gateway.worker is not None
            gateway.worker.stop(SIGKILL)
        [admission] = [record for record in gateway.records() if record["kind"] == "admission"]
        gateway.start_worker()
        told = usage(gateway)["tenant"]
    assert admission["reserved_nanodollars"] > 500 * 10_000
    assert Decimal(told["dollars_per_month"]["used"]) * NANODOLLARS == admission["reserved_nanodollars"]
    assert told["concurrency"]["used"] == 0


def test_another_worker_counts_what_was_spent(folder: Path) -> None:
    terms = {"limits": {"dollarsPerDay": "1"}, "modelBudgets": [{"model": MODEL, "dollarsPerMonth": "0.003"}]}
    with local_gateway(folder, settings=budgeted(**terms)) as gateway:
        while status_of(ask(gateway)) == 200:
            pass
        cost = spent(gateway)
        assert gateway.worker is not None
        assert gateway.worker.stop() == 0
        gateway.start_worker(shard=1)
        told = usage(gateway)
        assert b"dollars_per_month_exceeded" in ask(gateway, 20)
    assert Decimal(told["tenant"]["dollars_per_day"]["used"]) * NANODOLLARS == cost > 0
    assert Decimal(told["models"][MODEL]["dollars_per_month"]["used"]) * NANODOLLARS == cost


def test_a_model_without_a_price_is_refused_where_a_budget_counts_it(folder: Path) -> None:
    with local_gateway(folder, settings=budgeted(limits={"dollarsPerDay": "1"})) as gateway:
        refused = ask(gateway, model="small")
        assert (status_of(refused), error_of(refused)["code"]) == (503, "price_unknown")
        assert b"x-should-retry: false" in refused
        assert status_of(ask(gateway, model="small", key=KEYS["globex"])) == 200
        assert status_of(ask(gateway)) == 200
        assert gateway.upstream_stats()["started"] == 2
        rejected = [record for record in gateway.records() if record["kind"] == "rejection"]
    assert [record["code"] for record in rejected] == ["price_unknown"]


def test_nobody_waits_for_a_budget_that_comes_back_tomorrow(folder: Path) -> None:
    with local_gateway(folder, settings=budgeted(limits={"dollarsPerDay": "0.003"})) as gateway:
        while status_of(answer := ask(gateway, 10)) == 200:
            pass
        assert b"x-should-retry: false" in answer
        assert b"retry-after: " in answer
        assert error_of(answer)["code"] == "dollars_per_day_exceeded"
        with OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"]) as client, pytest.raises(RateLimitError):
            client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}], max_tokens=200)
        with (
            Anthropic(base_url=f"http://{gateway.address}", auth_token=KEYS["acme"], api_key=None) as claude,
            pytest.raises(AnthropicRateLimitError),
        ):
            claude.messages.create(model=MODEL, max_tokens=200, messages=[{"role": "user", "content": "hi"}])


def test_the_records_tell_what_was_set_aside_and_what_it_cost(folder: Path) -> None:
    with local_gateway(folder, settings=budgeted(limits={"dollarsPerMonth": "1"})) as gateway:
        ask(gateway)
        ask(gateway, key=KEYS["globex"])
        records = gateway.records()
    ours, theirs = (record for record in records if record["kind"] == "admission")
    # One token for each byte of the body, and the tokens of the answer.
    assert ours["reserved_nanodollars"] == (ours["bytes"] + 8) * 10_000
    assert "reserved_nanodollars" not in theirs
    first, second = (record for record in records if record["kind"] == "completion")
    assert first["cost_nanodollars"] == first["charged"] * 10_000
    assert second["cost_nanodollars"] == first["cost_nanodollars"]


def test_what_was_used_is_told_to_whoever_has_the_key_and_not_recorded(folder: Path) -> None:
    terms: dict[str, Any] = {
        "limits": {"requestsPerMinute": 10, "dollarsPerDay": "1"},
        "keyLimits": {"tokensPerDay": 1000},
        "modelBudgets": [{"model": "small", "dollarsPerDay": "0.5"}],
        "endpoints": ["ChatCompletions"],
    }
    with local_gateway(folder, settings=budgeted(**terms)) as gateway:
        assert status_of(ask(gateway)) == 200
        [charged] = [record["charged"] for record in gateway.records() if record["kind"] == "completion"]
        told = usage(gateway)
        assert send(gateway.address, request("HEAD", "/v1/usage", KEYS["acme"])).startswith(b"HTTP/1.1 200")
        assert status_of(send(gateway.address, request("GET", "/v1/usage", "not-a-key-0123456789"))) == 401
        assert status_of(send(gateway.address, request("POST", "/v1/usage", KEYS["acme"]))) == 405
        nothing_counted = usage(gateway, KEYS["globex"])
        kinds = [record["kind"] for record in gateway.records()]
    assert told["object"] == "usage"
    tenant, key = told["tenant"], told["key"]
    assert tenant["name"] == "acme"
    assert tenant["requests_per_minute"] == {"used": 1, "limit": 10, "remaining": 9, "resets_at": None}
    midnight = (told["at"] // 86_400 + 1) * 86_400
    unlimited = {"limit": None, "remaining": None}
    assert tenant["tokens_per_day"] == {"used": charged, **unlimited, "resets_at": midnight}
    cost = Decimal(charged) / 100_000
    assert Decimal(tenant["dollars_per_day"]["used"]) == cost
    assert Decimal(tenant["dollars_per_day"]["remaining"]) == 1 - cost
    assert tenant["dollars_per_month"]["resets_at"] >= midnight
    assert key["tokens_per_day"] == {
        "used": charged,
        "limit": 1000,
        "remaining": 1000 - charged,
        "resets_at": midnight,
    }
    assert told["models"]["small"]["dollars_per_day"] == {
        "used": "0",
        "limit": "0.5",
        "remaining": "0.5",
        "resets_at": midnight,
    }
    assert (nothing_counted["tenant"], set(nothing_counted)) == ({"name": "globex"}, {"object", "at", "tenant"})
    assert kinds.count("admission") == 1
    assert kinds.count("rejection") == 2
