"""Parts of the section `providers` that are spelled alike in the gateway's file and in a manifest."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proofgate_schema.section import Section

PerMinute = Annotated[int, Field(ge=1, le=1_000_000_000)]


class ProviderLimits(Section):
    """What a provider allows whoever its key is of in a minute, as far as each worker may use it."""

    requests_per_minute: PerMinute | None = None
    """Requests that each worker may send there in a minute, ten seconds' worth of them at once. Absent: any
    number."""
    tokens_per_minute: PerMinute | None = None
    """Tokens of prompts and answers that each worker may use there in a minute. Of a request under way its
    estimate counts, then what the provider says was used. Absent: any number."""
