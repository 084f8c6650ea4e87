"""The section `models`: names that clients may ask for, and who serves them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import SET, Kubernetes
from proofgate_schema.fields import DNS_LABEL, Listed, ModelName
from proofgate_schema.section import Section


def _upstream_model_name(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,256}", text) or text.count("*") > 1:
        raise ValueError(
            "a model's name at its provider has 1 to 256 printable ASCII characters, no space and one '*' at"
            " most"
        )
    return text


#: An ARN of Amazon Bedrock is a model's name, too. A `*` is what that of the model's own name stands for.
UpstreamModelName = Annotated[
    str,
    AfterValidator(_upstream_model_name),
    Kubernetes(
        "an API server checks patterns and lengths",
        {
            "minLength": 1,
            "maxLength": 256,
            "pattern": r"^[-a-zA-Z0-9._:/@]*[*]?[-a-zA-Z0-9._:/@]*$",
        },
    ),
]
ProviderName = Annotated[
    str,
    DNS_LABEL,
]
FallbackReason = Literal[
    "Unreachable", "RateLimited", "Overloaded", "Timeout", "ServerError", "Unauthorized", "ContextLength"
]


class Fallback(Section):
    """An upstream that serves a model when others did not."""

    provider: ProviderName
    """The provider: a name from `providers`."""
    upstream_model: UpstreamModelName | None = None
    """Name the provider knows the model by. A `*` is what that of the model's name stands for. Absent: the
    same name."""


class Route(Fallback):
    """An upstream that serves a share of a model's requests."""

    weight: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Its share, in proportion to the sum of the weights."""


class Model(Section):
    """A model that clients may name."""

    name: ModelName
    """Name in the client's request. With `*` at its end it stands for all names that begin so and are not in
    `models` themselves; of several, the longest."""
    provider: ProviderName | None = None
    """The provider that serves it: a name from `providers`. Instead of it, routes name several."""
    upstream_model: UpstreamModelName | None = None
    """Name the provider knows it by. A `*` is what that of the model's name stands for. Absent: the same
    name."""
    routes: Annotated[Listed[Route], Field(max_length=8)] = ()
    """Providers that share its requests, instead of provider. Each takes what failed at another."""
    fallbacks: Annotated[Listed[Fallback], Field(max_length=8)] = ()
    """Providers for requests that failed everywhere else, tried in this order."""
    fallback_on: Annotated[Listed[FallbackReason], SET, Kubernetes("each once", {"maxItems": 7})] = (
        "Unreachable",
        "RateLimited",
        "Overloaded",
    )
    """For what a request goes to the next provider. Unreachable: not all of it could be sent. RateLimited:
    429. Overloaded: 408, 503 or 529. Unauthorized: 401 or 403, the gateway's key is not accepted.
    ContextLength: the prompt is too long for the model. Timeout (no answer in time) and ServerError (500,
    502, 504, or an end in place of an answer): it may be answered, and paid for, twice."""
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 4096
    """What a request that sets no maximum reserves of a tenant's token limits for its answer: the most tokens
    that its provider gives an answer, if limits and budgets are to hold beforehand."""
