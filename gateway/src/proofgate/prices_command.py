"""`proofgate gateway prices`: lists the price of each model in a configuration."""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from proofgate import _core, output
from proofgate.config import InvalidConfigError, load_settings
from proofgate.config.core_json import prices_of as price_entries
from proofgate.config.settings import Settings
from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, fail

_RATE_FIELDS = (
    "input",
    "cached_input",
    "cache_write",
    "cache_write_1h",
    "audio_input",
    "output",
    "audio_output",
)
_HEADINGS = ("input", "cached", "cache write", "for an hour", "audio in", "output", "audio out")


def show(options: argparse.Namespace) -> int:
    """Lists the price that applies to each model."""
    try:
        settings = load_settings(options.config)
        at = time.time_ns() // 1000 if options.at is None else _midnight(options.at)
    except InvalidConfigError as error:
        return fail(f"the configuration is not valid\n{error}", EXIT_USAGE)
    except ValueError:
        return fail("--at needs a day, such as 2026-01-31", EXIT_USAGE)
    listed = prices_of(settings, at)
    if output.is_data(options):
        output.show(options, listed)
    else:
        print(_text(listed))
    return EXIT_OK


def prices_of(settings: Settings, at: int) -> list[dict[str, Any]]:
    """Returns the price of each model at a time (Unix microseconds), in decimal US dollars: for a million
    tokens, for a request and for a tool call. A model without a price has `price: null`. Raises the core's
    ConfigError."""
    asked = {
        "prices": price_entries(settings),
        "providers": [{"name": entry.name, "baseURL": entry.base_url} for entry in settings.providers],
        "models": [model.model_dump(mode="json", by_alias=True) for model in settings.models],
    }
    return [_price_entry(entry) for entry in json.loads(_core.prices_at(json.dumps(asked), at))]


def _price_entry(entry: dict[str, Any]) -> dict[str, Any]:
    price = entry["price"]
    if price is not None:
        price = {
            "source": "default" if price["default"] else "configuration",
            "effective_from": _day(price["effective_from"]),
            **_rates(price),
            "per_request": _decimal(price["per_request"], 12),
            "tools": {kind: _decimal(amount, 12) for kind, amount in price["tools"].items()},
            "above": [_long_prompt_rates(level) for level in price["above"]],
            "tiers": {
                name: {**_rates(tier), "above": [_long_prompt_rates(level) for level in tier["above"]]}
                for name, tier in price["tiers"].items()
            },
            "max_input_tokens": price["max_input_tokens"],
            "max_output_tokens": price["max_output_tokens"],
        }
    next_change = entry["next_change"]
    return {**entry, "price": price, "next_change": next_change and _day(next_change)}


def _rates(level: dict[str, Any]) -> dict[str, str]:
    return {part: _decimal(level[part], 6) for part in _RATE_FIELDS}


def _long_prompt_rates(level: dict[str, Any]) -> dict[str, Any]:
    return {"prompt_tokens": level["prompt_tokens"], **_rates(level)}


def _text(listed: list[dict[str, Any]]) -> str:
    rows: list[tuple[str, ...]] = [
        ("model", "provider", "upstream model", "from", *_HEADINGS, "request", "next change")
    ]
    for entry in listed:
        price = entry["price"]
        told = ("no price", *("-" for _ in _RATE_FIELDS), "-")
        if price is not None:
            since = price["effective_from"] + (" (default)" if price["source"] == "default" else "")
            told = (since, *(price[part] for part in _RATE_FIELDS), price["per_request"])
        names = (entry["model"], entry["provider"], entry["upstream_model"])
        rows.append((*names, *told, entry["next_change"] or "-"))
        rows += [
            ("", "", kind, "", *(level[part] for part in _RATE_FIELDS), "", "")
            for kind, level in _levels(price)
        ]
        for kind, amount in _tools(price):
            rows.append(("", "", f"  each {kind}", "", *("" for _ in _RATE_FIELDS), amount, ""))
    return output.table(rows)


def _levels(price: dict[str, Any] | None) -> list[tuple[str, dict[str, Any]]]:
    """The prices for long prompts and for tiers, each with a label."""
    if price is None:
        return []
    tiers = [("standard", price), *price["tiers"].items()]
    found = []
    for name, tier in tiers:
        if tier is not price:
            found.append((f"  {name}", tier))
        found += [(f"  {name}, above {level['prompt_tokens']}", level) for level in tier["above"]]
    return found


def _tools(price: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The prices of one tool call, by kind of tool."""
    return [] if price is None else sorted(price["tools"].items())


def _midnight(day: str) -> int:
    return int(datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) * 1_000_000


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _decimal(number: int, places: int) -> str:
    return f"{Decimal(number).scaleb(-places).normalize():f}"
