"""The limits, end to end: exact under concurrency and after a kill, and reported in the fields that clients read."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI, RateLimitError
from proofgate import _core
from proofgate.limit_kinds import LIMIT_KINDS

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway, not_over_midnight
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, send, status_of


@pytest.fixture(autouse=True)
def one_day() -> None:
    not_over_midnight(60)


def limited(**limits: int) -> dict[str, Any]:
    tenants = [
        {"name": tenant, "keyHashes": [_core.hash_api_key(key)], **({"limits": limits} if tenant == "acme" else {})}
        for tenant, key in KEYS.items()
    ]
    return {"tenants": tenants}


def ask(gateway: LocalGateway, tokens: int = 8) -> bytes:
    messages = [{"role": "user", "content": f"mock:tokens={tokens}"}]
    body = json.dumps({"model": MODEL, "max_tokens": tokens, "messages": messages}).encode()
    return send(gateway.address, chat_request(body, KEYS["acme"]))


def charged(gateway: LocalGateway) -> int:
    return sum(record.get("charged") or 0 for record in gateway.records() if record["kind"] == "completion")


def test_requests_beyond_the_limit_are_turned_away_with_a_time_to_come_back(folder: Path) -> None:
    with local_gateway(folder, settings=limited(requestsPerMinute=3)) as gateway:
        answers = [ask(gateway) for _ in range(5)]
        with OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:
            try:
                client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
                raise AssertionError("the fourth request must be turned away")
            except RateLimitError as error:
                assert error.code == "requests_per_minute_exceeded"
    assert [status_of(answer) for answer in answers] == [200, 200, 200, 429, 429]
    assert b"x-ratelimit-remaining-requests: 0" in answers[2]
    assert b"retry-after: " in answers[3]


def test_sixty_four_clients_never_overspend_a_budget(folder: Path) -> None:
    budget = 2000
    with local_gateway(folder, settings=limited(tokensPerDay=budget)) as gateway:
        with ThreadPoolExecutor(64) as clients:
            statuses = [status_of(answer) for answer in clients.map(lambda _: ask(gateway, 20), range(256))]
        # Use the rest of the limit that requests in flight have released.
        while status_of(ask(gateway, 20)) == 200:
            pass
        spent = charged(gateway)
    assert set(statuses) == {200, 429}
    assert spent <= budget
    # Each request reserves about 30 tokens, so the rest is less than one reservation.
    assert spent > budget - 2 * 40


def test_a_budget_is_exact_across_a_kill(folder: Path) -> None:
    budget = 600
    with local_gateway(folder, settings=limited(tokensPerDay=budget)) as gateway:
        before = [status_of(ask(gateway, 20)) for _ in range(8)]
        assert gateway.worker is not None
        gateway.worker.stop(signal.SIGKILL)
        gateway.start_worker()
        after = [status_of(ask(gateway, 20)) for _ in range(40)]
        spent = charged(gateway)
    assert set(before) == {200}
    assert set(after) == {200, 429}
    assert budget - 2 * 40 < spent <= budget


def test_other_tenants_are_not_touched(folder: Path) -> None:
    with local_gateway(folder, settings=limited(requestsPerMinute=1)) as gateway:
        assert [status_of(ask(gateway)) for _ in range(2)] == [200, 429]
        body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
        other = next(key for tenant, key in KEYS.items() if tenant != "acme")
        assert status_of(send(gateway.address, chat_request(body, other))) == 200


def test_how_much_of_its_limits_each_tenant_has_used_is_told_with_the_token(folder: Path) -> None:
    with local_gateway(folder, settings=limited(requestsPerMinute=4, tokensPerDay=100_000)) as gateway:

        def told() -> Any:
            return json.loads(gateway.admin_text("/tenants/limits", token=gateway.admin_token))

        def used() -> dict[str, Any]:
            no_limit = dict.fromkeys(kind.field for kind in LIMIT_KINDS)
            tokens = {"used": charged(gateway), "limit": 100_000}
            of_acme = {"requests_per_minute": {"used": 2, "limit": 4}, "tokens_per_day": tokens}
            tenants = [{"tenant": "acme", **no_limit, **of_acme}]

            return {"tenants": tenants, "more": 0, "namespaces": [], "more_namespaces": 0}

        assert told()["tenants"][0]["requests_per_minute"] == {"used": 0, "limit": 4}
        assert [status_of(ask(gateway)) for _ in range(2)] == [200, 200]
        wait_until(lambda: bool(told() == used()), PATIENCE, "both requests are reported")
        assert gateway.worker is not None
        gateway.worker.stop(signal.SIGKILL)
        gateway.start_worker()
        assert told() == used(), "its successor knows at once"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            gateway.admin_text("/tenants/limits")
        command = [sys.executable, "-m", "proofgate", "status", "--admin", f"http://{gateway.admin}"]
        command += ["--token-file", str(folder / "admin-token")]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
        # A limit that no tenant has gets no column.
        assert "\nLIMITS USED  REQUESTS/MIN  TOKENS/DAY\n" in shown
        assert "\nacme         2/4 50%       " in shown
