"""Prices for the core, and the gateway's built-in table of prices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from proofgate_schema.prices import Price


class DefaultPrice(Price):
    """A built-in price of the gateway."""

    host: str
    """The host of the base URLs to which the price applies; one `*` matches a part of the host name."""


def nanodollars(text: str) -> int:
    """Converts an amount of dollars to nanodollars (10^-9 USD), exactly."""
    return int(Decimal(text).scaleb(9))


def price_documents(prices: tuple[Price, ...], defaults: Iterable[DefaultPrice] = ()) -> list[dict[str, Any]]:
    """Returns the section of prices for the core."""
    return [
        *(_document(price) for price in prices),
        *({**_document(price), "host": price.host, "default": True} for price in defaults),
    ]


def _document(price: Price) -> dict[str, Any]:
    return price.model_dump(
        mode="json", by_alias=True, exclude={"currency", "host"}, exclude_none=True, exclude_defaults=True
    )


def default_prices_for(targets: Iterable[tuple[str, str]]) -> list[DefaultPrice]:
    """The gateway's built-in prices for these targets. A target is the host of a provider's base URL, and the
    name of a model at this provider."""
    wanted = sorted(set(targets))
    return [
        DefaultPrice.model_validate(entry)
        for entry in _default_prices()
        if any(_applies_to(entry, host, model) for host, model in wanted)
    ]


def _applies_to(entry: dict[str, Any], host: str, model: str) -> bool:
    """Whether a default price may apply to a model at a provider. `*` in `model` matches any name."""
    before, wildcard, after = model.partition("*")
    named: str = entry["model"]
    may_be = bool(wildcard) and named.startswith(before) and named.endswith(after)
    is_model = named == model or may_be
    return is_model and re.fullmatch(_host_pattern(entry["host"]), host) is not None


@cache
def _default_prices() -> tuple[dict[str, Any], ...]:
    # docs/generate_prices.py writes the file, and tests check it completely. Only the prices in use are
    # checked here.
    text = resources.files("proofgate.config").joinpath("default_prices.json").read_text()
    return tuple(json.loads(text)["prices"])


@cache
def _host_pattern(host: str) -> str:
    return re.escape(host).replace(r"\*", "[^.]+")
