"""The section `prices`: prices of models. Amounts of money are text, so that they stay exact."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from proofgate_schema.annotations import KubernetesOverride
from proofgate_schema.fields import DNS_LABEL, TupleOf
from proofgate_schema.section import Section

_DATE_MESSAGE = "write a date (RFC 3339), for example 2026-01-31: it begins at midnight UTC"
_PER_MILLION_MESSAGE = (
    "write dollars as text, for example '0.15': at most 1000000, with at most 6 decimal places"
)
_PER_REQUEST_MESSAGE = (
    "write dollars as text, for example '0.01': at most 1000, with at most 12 decimal places"
)
_BUDGET_MESSAGE = (
    "write dollars as text, for example '25.50': more than 0, less than 1000000000, with at most 9 decimal"
    " places"
)


def _date(value: object) -> int:
    # YAML parses a date without quotes as a date object.
    text = value if isinstance(value, str) else getattr(value, "isoformat", str)()
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(_DATE_MESSAGE)
    try:
        seconds = int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        raise ValueError(_DATE_MESSAGE) from None
    if seconds < 0:
        raise ValueError("write a date after 1970")
    return seconds


def _decimal(value: object, whole: int, places: int, most: int, told: str) -> str:
    # Never a float: the amount that is charged must be exactly the text.
    pattern = rf"[0-9]{{1,{whole}}}(\.[0-9]{{1,{places}}})?"
    if not isinstance(value, str) or not re.fullmatch(pattern, value) or Decimal(value) > most:
        raise ValueError(told)
    return value


def _per_token(value: object) -> str:
    return _decimal(value, 7, 6, 1_000_000, _PER_MILLION_MESSAGE)


def _per_request(value: object) -> str:
    return _decimal(value, 4, 12, 1000, _PER_REQUEST_MESSAGE)


def _budget(value: object) -> str:
    text = _decimal(value, 9, 9, 1_000_000_000, _BUDGET_MESSAGE)
    if not Decimal(text):
        raise ValueError(_BUDGET_MESSAGE)
    return text


def _model_pattern(text: str) -> str:
    if not re.fullmatch(r"[!-)+-~]{0,127}([!-)+-~]|\*)", text):
        raise ValueError(
            "write a model's name at its provider, or a prefix that ends with *: 1 "
            "to 128 printable ASCII characters"
        )
    return text


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _tier_name(name: str) -> str:
    # Not a pattern: a structural schema cannot restrict the keys of a map.
    if not re.fullmatch(r"[a-z0-9][a-z0-9_+-]{0,30}", name):
        raise ValueError(
            "the name of a tier has 1 to 31 characters of a to z, 0 to 9, _, + and -, and begins with a "
            "letter or digit"
        )
    return name


def _tool_kind(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", name):
        raise ValueError(
            "the kind of a tool has 1 to 64 characters (letters, digits and _ . -), and begins with a letter"
        )
    return name


#: More than 0, less than 10^9, with at most 9 decimal places.
BUDGET_PATTERN = r"^([1-9][0-9]{0,8}(\.[0-9]{1,9})?|0\.0{0,3}[1-9][0-9]{0,5})$"
PER_MILLION_PATTERN = r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$"
PER_REQUEST_PATTERN = r"^(0|[1-9][0-9]{0,2})(\.[0-9]{1,12})?$"
_DATE_PATTERN = r"^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
_MODEL_PATTERN = r"^([-a-zA-Z0-9._:/@]+\*?|\*)$"
_PATTERN_REASON = "the API server checks only patterns"

#: The start of a day in seconds since 1970; a date as text in a file.
Date = Annotated[
    int,
    BeforeValidator(_date),
    PlainSerializer(_day, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date"}),
    KubernetesOverride(_PATTERN_REASON, {"maxLength": 10, "pattern": _DATE_PATTERN}),
]
DollarsPerMillion = Annotated[
    str,
    BeforeValidator(_per_token),
    KubernetesOverride(_PATTERN_REASON, {"maxLength": 13, "pattern": PER_MILLION_PATTERN}),
]
DollarsPerRequest = Annotated[
    str,
    BeforeValidator(_per_request),
    KubernetesOverride(_PATTERN_REASON, {"maxLength": 16, "pattern": PER_REQUEST_PATTERN}),
]
#: The amount of a budget.
Dollars = Annotated[
    str,
    BeforeValidator(_budget),
    KubernetesOverride(_PATTERN_REASON, {"maxLength": 19, "pattern": BUDGET_PATTERN}),
]
ModelPattern = Annotated[
    str,
    AfterValidator(_model_pattern),
    KubernetesOverride(
        "the API server limits the cost of CEL rules, which grows with the length of names",
        {"minLength": 1, "maxLength": 96, "pattern": _MODEL_PATTERN},
    ),
]
#: The name of a service tier in requests and responses.
TierName = Annotated[str, AfterValidator(_tier_name)]
#: The type of a tool that providers run themselves, with or without a date at its end.
ToolKind = Annotated[str, AfterValidator(_tool_kind)]
Tokens = Annotated[int, Field(ge=1, le=1_000_000_000)]


_MANIFEST_LIST_LIMIT = KubernetesOverride("etcd limits the size of an object", {"maxItems": 2})


class LongPromptPrice(Section):
    """Prices of all tokens of a request with a long prompt."""

    prompt_tokens: Tokens
    """Number of prompt tokens, including cached tokens, above which these prices apply."""
    input: DollarsPerMillion
    """Dollars per million prompt tokens."""
    cached_input: DollarsPerMillion | None = None
    """Dollars per million prompt tokens read from a cache. If absent, the same as `input`."""
    cache_write: DollarsPerMillion | None = None
    """Dollars per million prompt tokens written to a cache. If absent, the same as `input`, but at least the
    price for shorter prompts."""
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """Dollars per million prompt tokens written to a cache that keeps them for longer than five minutes. If
    absent, the higher of `cacheWrite` and twice `input`, but at least the price for shorter prompts."""
    audio_input: DollarsPerMillion | None = None
    """Dollars per million audio tokens in prompts. If absent, the same as `input`, but at least the price for
    shorter prompts."""
    output: DollarsPerMillion
    """Dollars per million response tokens, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Dollars per million audio tokens in responses. If absent, the same as `output`, but at least the price
    for shorter prompts."""


class TierPrice(Section):
    """Prices of a service tier."""

    input: DollarsPerMillion
    """Dollars per million prompt tokens."""
    cached_input: DollarsPerMillion | None = None
    """Dollars per million prompt tokens read from a cache. If absent, the same as `input`."""
    cache_write: DollarsPerMillion | None = None
    """Dollars per million prompt tokens written to a cache. If absent, the same as `input`, but at least the
    price in the standard tier."""
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """Dollars per million prompt tokens written to a cache that keeps them for longer than five minutes. If
    absent, the higher of `cacheWrite` and twice `input`, but at least the price in the standard tier."""
    audio_input: DollarsPerMillion | None = None
    """Dollars per million audio tokens in prompts. If absent, the same as `input`, but at least the price in
    the standard tier."""
    output: DollarsPerMillion
    """Dollars per million response tokens, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Dollars per million audio tokens in responses. If absent, the same as `output`, but at least the price
    in the standard tier."""
    above: Annotated[TupleOf[LongPromptPrice], Field(max_length=4), _MANIFEST_LIST_LIMIT] = ()
    """Prices for long prompts, in ascending order of promptTokens. Absent: at least the prices in the
    standard tier."""


class Price(Section):
    """The price of a model, in US dollars per million tokens, as text such as '0.15'."""

    provider: Annotated[str, DNS_LABEL] | None = None
    """Name of the provider for which the price applies. Absent: any provider."""
    model: ModelPattern
    """The provider's name for the model. A `*` at its end matches the rest of a name."""
    effective_from: Date
    """First day on which the price applies, from midnight UTC, for example 2026-01-31."""
    currency: Literal["USD"] = "USD"
    """Currency of the price. Only USD is supported."""
    input: DollarsPerMillion
    """Dollars per million prompt tokens."""
    cached_input: DollarsPerMillion | None = None
    """Dollars per million prompt tokens read from a cache. If absent, the same as `input`."""
    cache_write: DollarsPerMillion | None = None
    """Dollars per million prompt tokens written to a cache. If absent, the same as `input`."""
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """Dollars per million prompt tokens written to a cache that keeps them for longer than five minutes. If
    absent, the higher of `cacheWrite` and twice `input`."""
    audio_input: DollarsPerMillion | None = None
    """Dollars per million audio tokens in prompts. If absent, the same as `input`."""
    output: DollarsPerMillion
    """Dollars per million response tokens, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Dollars per million audio tokens in responses. If absent, the same as `output`."""
    per_request: DollarsPerRequest | None = None
    """Dollars for each answered request, in addition to the price of its tokens. Absent: none."""
    tools: Annotated[
        dict[ToolKind, DollarsPerRequest],
        Field(max_length=16),
        KubernetesOverride("etcd limits the size of an object", {"maxProperties": 8}),
    ] = Field(default_factory=dict)
    """Dollars per call of each tool that the provider runs itself. The key is the tool's type (web_search; a
    date at its end can be omitted) or Gemini's field (googleSearch). '0': a call has no price in addition to
    its tokens. When a budget in dollars applies, a request that offers a tool without a price is refused."""
    above: Annotated[TupleOf[LongPromptPrice], Field(max_length=4), _MANIFEST_LIST_LIMIT] = ()
    """Prices for long prompts, in ascending order of promptTokens. Absent: all prompts have the same
    price."""
    tiers: Annotated[
        dict[TierName, TierPrice],
        Field(max_length=8),
        KubernetesOverride("etcd limits the size of an object", {"maxProperties": 4}),
    ] = Field(default_factory=dict)
    """Prices of service tiers other than the standard tier. The key is the value that selects the tier in a
    request: the value of service_tier, or of Anthropic's speed or inference_geo. When a budget in dollars
    applies, a request for a tier without a price is refused."""
    max_input_tokens: Tokens | None = None
    """Maximum prompt tokens that the model accepts. A budget reserves no more than this. Absent: the maximum
    is not known."""
    max_output_tokens: Tokens | None = None
    """Maximum tokens of a response to a request that sets no maximum. A budget reserves these tokens. Absent:
    maxOutputTokens of the model."""

    @model_validator(mode="after")
    def _is_ordered(self) -> Price:
        for levels in (self.above, *(tier.above for tier in self.tiers.values())):
            lengths = [level.prompt_tokens for level in levels]
            if lengths != sorted(set(lengths)):
                raise ValueError(
                    "list the prices of long prompts in ascending order of promptTokens, without duplicates"
                )
        return self
