"""What models cost, and budgets, as frozen models. Amounts of money are text, so that they stay exact."""

from typing import Annotated, Literal

from pydantic import Field

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
Day = Annotated[str, Field(max_length=10, pattern=_DAY, json_schema_extra={"format": "date"})]


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
    audio_input: DollarsPerMillion | None = None
    """Those of audio. Absent: as input."""
    output: DollarsPerMillion
    """Tokens of answers, reasoning included."""
    audio_output: DollarsPerMillion | None = None
    """Those of audio. Absent: as output."""
    per_request: DollarsPerRequest | None = None
    """Dollars for each request that is answered, besides its tokens. Absent: nothing."""
