"""The costs of exchanges: in records, in metrics, and in the output of `proofgate gateway prices`."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.loopback_server import loopback_server, url_of
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, send, status_of

PRICE = {
    "input": "2.50",
    "cachedInput": "0.3125",
    "cacheWrite": "3.000001",
    "audioInput": "40",
    "output": "10.000003",
    "audioOutput": "80",
    "perRequest": "0.000000000007",
}


def priced(**price: str) -> dict[str, Any]:
    return {"prices": [{"model": MODEL, "effectiveFrom": "2026-01-01", **price}]}


@contextmanager
def upstream(usages: list[dict[str, Any]]) -> Iterator[str]:
    """An upstream that reports these usages, one after another; yields its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            answer = json.dumps({"choices": [], "usage": usages.pop(0)}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with loopback_server(Handler) as server:
        yield f"{url_of(server)}/v1"


def ask(gateway: LocalGateway) -> int:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
    return status_of(send(gateway.address, chat_request(body, KEYS["acme"])))


def completions(gateway: LocalGateway) -> list[dict[str, Any]]:
    return [record for record in gateway.records() if record["kind"] == "completion"]


def cost(usage: dict[str, int], price: dict[str, str]) -> int:
    """The cost in nanodollars, computed with decimals from the usage in a record."""
    left = usage["prompt_tokens"]
    dollars = Decimal(price["perRequest"])
    for part, each in (
        ("cached_prompt_tokens", "cachedInput"),
        ("cache_write_tokens", "cacheWrite"),
        ("audio_prompt_tokens", "audioInput"),
    ):
        taken = min(usage.get(part, 0), left)
        left -= taken
        dollars += taken * Decimal(price[each]) / 1_000_000
    audio = usage.get("audio_completion_tokens", 0)
    dollars += left * Decimal(price["input"]) / 1_000_000
    dollars += audio * Decimal(price["audioOutput"]) / 1_000_000
    dollars += (usage["completion_tokens"] - audio) * Decimal(price["output"]) / 1_000_000
    return math.ceil(dollars * 10**9)


def test_a_cost_is_exact_whatever_the_parts_of_a_usage(folder: Path) -> None:
    chance = random.Random(7)
    usages = []
    for size in (1, 3, 100, 10**6, 10**9) * 4:
        prompt, completion = chance.randint(0, size), chance.randint(0, size)
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
        parts = ("cached_tokens", "cache_write_tokens", "audio_tokens")
        usage["prompt_tokens_details"] = {part: chance.randint(0, prompt) for part in parts}
        usage["completion_tokens_details"] = {"audio_tokens": chance.randint(0, completion)}
        usages.append(usage)
    asked = len(usages)
    with upstream(list(usages)) as url:
        settings = {**priced(**PRICE), "providers": [{"name": "mock", "type": "OpenAI", "baseURL": url}]}
        with local_gateway(folder, settings=settings) as gateway:
            assert [ask(gateway) for _ in range(asked)] == [200] * asked
            ended = completions(gateway)
            total = sum(record["cost_nanodollars"] for record in ended)
            series = f'proofgate_cost_dollars_total{{tenant="acme",model="{MODEL}",provider="mock"}}'

            def told() -> list[float]:
                lines = gateway.admin_text("/metrics").splitlines()
                return [float(line.split()[-1]) for line in lines if line.startswith(series)]

            wait_until(lambda: told() == [total / 10**9], PATIENCE, "the metric has it all")
    for record, usage in zip(ended, usages, strict=True):
        assert record["usage"]["prompt_tokens"] == usage["prompt_tokens"]
        assert record["cost_nanodollars"] == cost(record["usage"], PRICE)


def test_without_a_price_or_a_usage_no_cost_is_recorded(folder: Path) -> None:
    settings = priced(input="1", output="1")
    settings["prices"][0]["model"] = "another-model"
    with local_gateway(folder, settings=settings) as gateway:
        assert ask(gateway) == 200
        [record] = completions(gateway)
    assert record["usage"] is not None
    assert "cost_nanodollars" not in record


def test_what_holds_on_a_day_is_listed(folder: Path) -> None:
    settings = {
        "providers": [
            {"name": "mock", "type": "OpenAI", "baseURL": "https://api.openai.com/v1"},
            {"name": "other", "type": "OpenAI", "baseURL": "https://llm.example.com/v1"},
        ],
        "models": [
            {"name": MODEL, "provider": "mock"},
            {"name": "elsewhere", "provider": "other", "upstreamModel": MODEL},
        ],
        "prices": [
            {"model": "gpt-4*", "provider": "mock", "effectiveFrom": "2026-06-01", "input": "1", "output": "2"},
            {"model": MODEL, "provider": "mock", "effectiveFrom": "2026-07-01", "input": "3", "output": "4"},
        ],
        "defaultPrices": True,
    }
    gateway = LocalGateway(folder, settings=settings)
    gateway.write_configuration()

    def listed(day: str) -> list[Any]:
        shown = proofgate("gateway", "prices", folder / "gateway.yaml", "--at", day, "--output", "json")
        entries: list[Any] = json.loads(shown.stdout)
        return [
            entry["price"] and (entry["price"]["source"], entry["price"]["input"], entry["next_change"])
            for entry in entries
        ]

    assert listed("2025-11-01") == [None, None]
    assert listed("2026-05-31") == [("default", "0.15", "2026-06-01"), None]
    assert listed("2026-06-01") == [("configuration", "1", "2026-07-01"), None]
    assert listed("2026-07-01") == [("configuration", "3", None), None]
