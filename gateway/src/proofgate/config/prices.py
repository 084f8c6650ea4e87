"""The prices section: what models cost, and the table that comes with the gateway."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

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
#: A tier of service, as requests and answers name it.
TierName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_+-]{0,30}$")]
#: A kind of tool that providers run themselves, with or without the date behind it.
ToolKind = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
Tokens = Annotated[int, Field(ge=1, le=1_000_000_000)]


class LongPromptPrice(Section):
    """What all tokens of an exchange cost whose prompt is long; what is not set costs as `input` or `output`
    here, and no less than without this part."""

    prompt_tokens: Tokens
    """Prompts with more tokens than this, those read from a cache included."""
    input: DollarsPerMillion
    """As of a price."""
    cached_input: DollarsPerMillion | None = None
    """As of a price."""
    cache_write: DollarsPerMillion | None = None
    """As of a price."""
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """As of a price."""
    audio_input: DollarsPerMillion | None = None
    """As of a price."""
    output: DollarsPerMillion
    """As of a price."""
    audio_output: DollarsPerMillion | None = None
    """As of a price."""


class TierPrice(Section):
    """What a tier of service costs; what is not set costs as `input` or `output` here, and no less than in
    the standard tier."""

    input: DollarsPerMillion
    """As of a price."""
    cached_input: DollarsPerMillion | None = None
    """As of a price."""
    cache_write: DollarsPerMillion | None = None
    """As of a price."""
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """As of a price."""
    audio_input: DollarsPerMillion | None = None
    """As of a price."""
    output: DollarsPerMillion
    """As of a price."""
    audio_output: DollarsPerMillion | None = None
    """As of a price."""
    above: Annotated[Listed[LongPromptPrice], Field(max_length=4)] = ()
    """Of long prompts, the shortest first; without any, no less than in the standard tier."""


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
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """Those written to a cache that keeps them for longer than five minutes; twice `input` when it is not
    set, and no less than `cacheWrite`."""
    audio_input: DollarsPerMillion | None = None
    """Those of audio; as `input` when it is not set."""
    output: DollarsPerMillion
    """Tokens of answers, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Those of audio; as `output` when it is not set."""
    per_request: DollarsPerRequest | None = None
    """Dollars for each request that is answered, besides its tokens."""
    tools: Annotated[dict[ToolKind, DollarsPerRequest], Field(max_length=16)] = Field(default_factory=dict)
    """Dollars for each call of a tool that the provider runs itself, by its kind without the date behind it
    (`web_search`) or Gemini's field (`googleSearch`); '0' for one that costs nothing besides tokens."""
    above: Annotated[Listed[LongPromptPrice], Field(max_length=4)] = ()
    """Of long prompts, the shortest first."""
    tiers: Annotated[dict[TierName, TierPrice], Field(max_length=8)] = Field(default_factory=dict)
    """Of other tiers of service than the standard one, by the names that requests give them
    (`service_tier`, Anthropic's `speed` and `inference_geo`)."""
    max_input_tokens: Tokens | None = None
    """The most tokens that the model takes as a prompt: the provider refuses a longer one."""
    max_output_tokens: Tokens | None = None
    """The most tokens that an answer has whose request names no maximum."""

    @model_validator(mode="after")
    def _is_ordered(self) -> Price:
        for levels in (self.above, *(tier.above for tier in self.tiers.values())):
            lengths = [level.prompt_tokens for level in levels]
            if lengths != sorted(set(lengths)):
                raise ValueError(
                    "list the prices of long prompts by promptTokens, the smallest first, each once"
                )
        return self


class DefaultPrice(Price):
    """A price that comes with the gateway."""

    host: str
    """The host of the base URLs that it holds for; one `*` in it stands for a part of a name."""


def nanodollars(text: str) -> int:
    """An amount of dollars in nanodollars (10^-9 USD), exact."""
    return int(Decimal(text).scaleb(9))


def price_documents(prices: tuple[Price, ...], defaults: Iterable[DefaultPrice] = ()) -> list[dict[str, Any]]:
    """The prices section for the core."""
    return [
        *(_document(price) for price in prices),
        *({**_document(price), "host": price.host, "default": True} for price in defaults),
    ]


def _document(price: Price) -> dict[str, Any]:
    return price.model_dump(exclude={"currency", "host"}, exclude_none=True, exclude_defaults=True)


def default_prices_of(targets: Iterable[tuple[str, str]]) -> list[DefaultPrice]:
    """The prices that come with the gateway for these targets, each the host of a provider's base URL and the
    name of a model there."""
    wanted = sorted(set(targets))
    return [
        DefaultPrice.model_validate(entry)
        for entry in _default_prices()
        if any(_is_for(entry, host, model) for host, model in wanted)
    ]


def _is_for(entry: dict[str, Any], host: str, model: str) -> bool:
    """Whether a default price may hold for a model at a provider; `*` in `model` stands for any name."""
    before, wildcard, after = model.partition("*")
    named: str = entry["model"]
    may_be = bool(wildcard) and named.startswith(before) and named.endswith(after)
    is_model = named == model or may_be
    return is_model and re.fullmatch(_host_pattern(entry["host"]), host) is not None


@cache
def _default_prices() -> tuple[dict[str, Any], ...]:
    # Written by docs/generate_prices.py, and checked in tests: only those that are used are checked here.
    text = resources.files("proofgate.config").joinpath("default_prices.json").read_text()
    return tuple(json.loads(text)["prices"])


@cache
def _host_pattern(host: str) -> str:
    return re.escape(host).replace(r"\*", "[^.]+")
