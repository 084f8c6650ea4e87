"""The section `models`: names that clients may request, and the providers that serve them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import UNIQUE_ITEMS, KubernetesOverride
from proofgate_schema.fields import DNS_LABEL, ModelName, TupleOf
from proofgate_schema.section import Section


def _upstream_model_name(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,256}", text) or text.count("*") > 1:
        raise ValueError(
            "a model's name at its provider has 1 to 256 printable ASCII characters, no space and one '*' at"
            " most"
        )
    return text


#: The provider's name for a model, also an ARN of Amazon Bedrock. A `*` stands for the text that the `*` of
#: the model's own name matched.
UpstreamModelName = Annotated[
    str,
    AfterValidator(_upstream_model_name),
    KubernetesOverride(
        "the API server checks patterns and lengths",
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
    """A provider that serves a model's requests after others have failed."""

    provider: ProviderName
    """Name of the provider, from `providers`."""
    upstream_model: UpstreamModelName | None = None
    """The provider's name for the model. A `*` is replaced by the text that the `*` in the model's name
    matched. Absent: the name in the client's request."""


class Route(Fallback):
    """A provider that serves part of a model's requests."""

    weight: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Weight of this provider. Its fraction of the requests is its weight divided by the sum of all
    weights."""


class Model(Section):
    """A model that clients can request."""

    name: ModelName
    """Name in the client's request. A `*` at its end matches the rest of a name. An exact name takes
    precedence, then the longest prefix."""
    provider: ProviderName | None = None
    """Name of the provider that serves the model, from `providers`. To use several providers, set `routes`
    instead."""
    upstream_model: UpstreamModelName | None = None
    """The provider's name for the model. A `*` is replaced by the text that the `*` in `name` matched.
    Absent: the name in the client's request."""
    routes: Annotated[TupleOf[Route], Field(max_length=8)] = ()
    """Providers that share the model's requests by weight. Set `routes` instead of `provider`. If a request
    fails at one provider for a reason in `fallbackOn`, it goes to another."""
    fallbacks: Annotated[TupleOf[Fallback], Field(max_length=8)] = ()
    """Providers for requests that failed at the model's `provider`, or at all of its `routes`, for a reason
    in `fallbackOn`. The gateway tries these providers in this order."""
    fallback_on: Annotated[
        TupleOf[FallbackReason], UNIQUE_ITEMS, KubernetesOverride("each once", {"maxItems": 7})
    ] = (
        "Unreachable",
        "RateLimited",
        "Overloaded",
    )
    """Failures after which a request goes to the next provider. Unreachable: the request could not be sent
    completely. RateLimited: 429. Overloaded: 408, 503 or 529. Unauthorized: 401 or 403, because the provider
    rejects the gateway's key. ContextLength: the prompt is too long for the model. Timeout (no response in
    time) and ServerError (500, 502, 504, or a connection that ends without a response) can cause a request to
    be answered, and paid for, twice."""
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 4096
    """Output tokens to reserve for a request that sets no maximum. If limits and budgets must not be
    exceeded, set this field to the provider's own maximum."""
