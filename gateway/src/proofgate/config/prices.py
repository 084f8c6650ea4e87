"""The prices section: what models cost, and the table that comes with the gateway."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator

from proofgate.config.fields import Listed, Section

_DATES_ARE = "write a date (RFC 3339), for example 2026-01-31: it begins at midnight UTC"
_MILLIONS_ARE = "write dollars as text, for example '0.15': at most 1000000, with at most 6 decimal places"
_PER_REQUEST = "write dollars as text, for example '0.01': at most 1000, with at most 12 decimal places"
_BUDGETS_ARE = (
    "write dollars as text, for example '25.50': more than 0, less than 1000000000, with at most 9 decimal"
    " places"
)


def _date(value: object) -> int:
    # YAML reads a date without quotes as one.
    text = value if isinstance(value, str) else getattr(value, "isoformat", str)()
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(_DATES_ARE)
    try:
        seconds = int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        raise ValueError(_DATES_ARE) from None
    if seconds < 0:
        raise ValueError("write a date after 1970")
    return seconds


def _decimal(value: object, whole: int, places: int, most: int, told: str) -> str:
    # Never a float: what is written is what is charged.
    pattern = rf"[0-9]{{1,{whole}}}(\.[0-9]{{1,{places}}})?"
    if not isinstance(value, str) or not re.fullmatch(pattern, value) or Decimal(value) > most:
        raise ValueError(told)
    return value


def _per_token(value: object) -> str:
    return _decimal(value, 7, 6, 1_000_000, _MILLIONS_ARE)


def _per_request(value: object) -> str:
    return _decimal(value, 4, 12, 1000, _PER_REQUEST)


def _budget(value: object) -> str:
    text = _decimal(value, 9, 9, 1_000_000_000, _BUDGETS_ARE)
    if not Decimal(text):
        raise ValueError(_BUDGETS_ARE)
    return text


def _model_pattern(text: str) -> str:
    if not re.fullmatch(r"[!-)+-~]{0,127}([!-)+-~]|\*)", text):
        raise ValueError(
            "write a model's name at its provider, or the beginning of names with a * at its end: 1 to 128"
            " printable ASCII characters"
        )
    return text


Date = Annotated[int, BeforeValidator(_date)]
DollarsPerMillion = Annotated[str, BeforeValidator(_per_token)]
DollarsPerRequest = Annotated[str, BeforeValidator(_per_request)]
#: Of a budget.
Dollars = Annotated[str, BeforeValidator(_budget)]
ModelPattern = Annotated[str, AfterValidator(_model_pattern)]


class Price(Section):
    """What a model costs: US dollars for a million tokens, as decimal numbers in quotes."""

    provider: str | None = None
    """The name of a provider; any when it is not set."""
    model: ModelPattern
    """The model's name there (`upstreamModel`); with `*` at its end, all names that begin so."""
    effective_from: Date
    """The day from which on it holds, midnight UTC, such as 2026-01-31."""
    currency: Literal["USD"] = "USD"
    """The only one that is known."""
    input: DollarsPerMillion
    """Tokens of prompts."""
    cached_input: DollarsPerMillion | None = None
    """Those read from a cache; as `input` when it is not set."""
    cache_write: DollarsPerMillion | None = None
    """Those written to a cache; as `input` when it is not set."""
    audio_input: DollarsPerMillion | None = None
    """Those of audio; as `input` when it is not set."""
    output: DollarsPerMillion
    """Tokens of answers, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Those of audio; as `output` when it is not set."""
    per_request: DollarsPerRequest | None = None
    """Dollars for each request that is answered, besides its tokens."""


class _DefaultPrice(Price):
    host: str


class _DefaultPrices(Section):
    as_of: Date
    source: str
    prices: Listed[_DefaultPrice]


def nanodollars(text: str) -> int:
    """An amount of dollars in nanodollars (10^-9 USD), exact."""
    return int(Decimal(text).scaleb(9))


def price_documents(prices: tuple[Price, ...], with_defaults: bool) -> list[dict[str, Any]]:
    """The prices section for the core."""
    defaults = _default_prices().prices if with_defaults else ()
    return [
        *(_document(price) for price in prices),
        *({**_document(price), "host": price.host, "default": True} for price in defaults),
    ]


def _document(price: Price) -> dict[str, Any]:
    return price.model_dump(exclude={"currency", "host"}, exclude_none=True)


@cache
def _default_prices() -> _DefaultPrices:
    text = resources.files("proofgate.config").joinpath("default_prices.yaml").read_text()
    return _DefaultPrices.model_validate(yaml.safe_load(text))
