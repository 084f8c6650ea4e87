"""What models cost, and budgets, as frozen models. Amounts of money are text, so that they stay exact."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofgate_operator.api.fields import ResourceName, Section

#: More than 0, less than 10^9, with at most 9 decimal places.
BUDGET = r"^([1-9][0-9]{0,8}(\.[0-9]{1,9})?|0\.0{0,3}[1-9][0-9]{0,5})$"
PER_MILLION = r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$"
PER_REQUEST = r"^(0|[1-9][0-9]{0,2})(\.[0-9]{1,12})?$"
_DAY = r"^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
_MODEL = r"^([-a-zA-Z0-9._:/@]+\*?|\*)$"

Dollars = Annotated[str, Field(max_length=19, pattern=BUDGET)]
DollarsPerMillion = Annotated[str, Field(max_length=13, pattern=PER_MILLION)]
DollarsPerRequest = Annotated[str, Field(max_length=16, pattern=PER_REQUEST)]
_TIER = re.compile(r"[a-z0-9][a-z0-9_+-]{0,30}")


def _tier_name(name: str) -> str:
    """Checked here, since a structural schema knows no names of members."""
    if _TIER.fullmatch(name) is None:
        raise ValueError("the name of a tier has 1 to 31 of a to z, 0 to 9, _, + and -, none of these first")
    return name


_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def _tool_kind(name: str) -> str:
    """Checked here, as the name of a tier is."""
    if _TOOL.fullmatch(name) is None:
        raise ValueError("the kind of a tool has 1 to 64 letters, digits and _ . -, a letter first")
    return name


TierName = Annotated[str, AfterValidator(_tier_name)]
ToolKind = Annotated[str, AfterValidator(_tool_kind)]
Tokens = Annotated[int, Field(ge=1, le=1_000_000_000)]
Day = Annotated[str, Field(max_length=10, pattern=_DAY, json_schema_extra={"format": "date"})]


class LongPromptPrice(Section):
    """What all tokens of a request cost whose prompt is long."""

    prompt_tokens: Tokens
    """Prompts with more tokens than this, those read from a cache included."""
    input: DollarsPerMillion
    """Tokens of prompts."""
    cached_input: DollarsPerMillion | None = None
    """Those read from a cache. Absent: as input."""
    cache_write: DollarsPerMillion | None = None
    """Those written to a cache. Absent: as input, and no less than without this part."""
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """Those written to one that keeps them for longer than five minutes. Absent: twice input, or
    cacheWrite."""
    audio_input: DollarsPerMillion | None = None
    """Those of audio. Absent: as input, and no less than without this part."""
    output: DollarsPerMillion
    """Tokens of answers, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Those of audio. Absent: as output, and no less than without this part."""


class TierPrice(Section):
    """What a tier of service costs."""

    input: DollarsPerMillion
    """Tokens of prompts."""
    cached_input: DollarsPerMillion | None = None
    """Those read from a cache. Absent: as input."""
    cache_write: DollarsPerMillion | None = None
    """Those written to a cache. Absent: as input, and no less than without this part."""
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """Those written to one that keeps them for longer than five minutes. Absent: twice input, or
    cacheWrite."""
    audio_input: DollarsPerMillion | None = None
    """Those of audio. Absent: as input, and no less than without this part."""
    output: DollarsPerMillion
    """Tokens of answers, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Those of audio. Absent: as output, and no less than without this part."""
    above: Annotated[tuple[LongPromptPrice, ...], Field(max_length=2)] = ()
    """Of long prompts, the shortest first. Absent: no less than in the standard tier."""


class Price(Section):
    """What a model costs, in US dollars for a million tokens, as text such as '0.15'."""

    provider: ResourceName | None = None
    """A name from spec.providers. Absent: any."""
    model: Annotated[str, Field(min_length=1, max_length=96, pattern=_MODEL)]
    """The name that the provider knows the model by; with `*` at its end, all names that begin so."""
    effective_from: Day
    """The day from which on it holds, midnight UTC, such as 2026-01-31."""
    currency: Literal["USD"] = "USD"
    """The only one that is known."""
    input: DollarsPerMillion
    """Tokens of prompts."""
    cached_input: DollarsPerMillion | None = None
    """Those read from a cache. Absent: as input."""
    cache_write: DollarsPerMillion | None = None
    """Those written to a cache. Absent: as input."""
    cache_write_1h: DollarsPerMillion | None = Field(None, alias="cacheWrite1h")
    """Those written to one that keeps them for longer than five minutes. Absent: twice input, or cacheWrite
    if that is more."""
    audio_input: DollarsPerMillion | None = None
    """Those of audio. Absent: as input."""
    output: DollarsPerMillion
    """Tokens of answers, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Those of audio. Absent: as output."""
    per_request: DollarsPerRequest | None = None
    """Dollars for each request that is answered, besides its tokens. Absent: nothing."""
    tools: Annotated[dict[ToolKind, DollarsPerRequest], Field(max_length=8)] = Field(default_factory=dict)
    """Dollars for each call of a tool that the upstream runs itself, by its kind without the date behind it
    (web_search) or Gemini's field (googleSearch): '0' for one that costs nothing besides tokens. Where a
    budget in money counts, a request that offers another one is refused."""
    above: Annotated[tuple[LongPromptPrice, ...], Field(max_length=2)] = ()
    """Of long prompts, the shortest first. Absent: all prompts cost the same."""
    tiers: Annotated[dict[TierName, TierPrice], Field(max_length=4)] = Field(default_factory=dict)
    """Of other tiers of service than the standard one, by the names that requests give them: service_tier,
    and Anthropic's speed and inference_geo. Where a budget in money counts, a request for another one is
    refused."""
    max_input_tokens: Tokens | None = None
    """The most tokens that the model takes as a prompt: a budget reserves no more. Absent: not known."""
    max_output_tokens: Tokens | None = None
    """The most tokens that an answer has whose request names no maximum: a budget reserves them. Absent:
    maxOutputTokens of the model."""
