"""The parts of the spec that say where requests go: providers, and the models that they serve.

Workers take on a change of them while they run.
"""

from typing import Annotated, Literal

from pydantic import Field

from proofgate_operator.api.fields import AUTHORITY, SET, ModelName, ResourceName, SecretKeyRef, Section

#: The path is printable ASCII without a query or fragment: a request's own path is appended.
_HTTP_URL = rf'^https?://{AUTHORITY}(/[!-"$->@-~]*)?$'

Beta = Annotated[str, Field(min_length=1, max_length=64, pattern="^[a-z0-9][-a-z0-9]*$")]


class Provider(Section):
    """An upstream that answers model requests."""

    name: ResourceName
    """Name that models refer to."""
    type: Literal["OpenAI", "AzureOpenAI", "Anthropic", "Gemini"]
    """Protocol of the upstream. OpenAI is that of vLLM, Ollama and many others, too; AzureOpenAI is the same
    with Azure's field for the key (the v1 API: models are named by their deployments)."""
    base_url: Annotated[str, Field(alias="baseURL", max_length=512, pattern=_HTTP_URL)]
    """Where the API begins, for example https://api.openai.com/v1, https://RESOURCE.openai.azure.com/openai/v1,
    https://api.anthropic.com/v1 or https://generativelanguage.googleapis.com/v1beta. No user name, query or
    fragment."""
    api_key_secret_ref: SecretKeyRef | None = None
    """The upstream's API key: one line of printable ASCII without spaces. Mounted into the workers, never
    copied; another key in the entry is used within seconds, another entry rolls the workers. Absent: the
    upstream wants none."""
    stream_usage: Literal["Ask", "Leave"] = "Ask"
    """Whether a stream is asked for its usage when the client does not ask. Leave is for an upstream that
    refuses stream_options."""
    untranslatable_fields: Literal["Refuse", "Drop"] = "Refuse"
    """What becomes of a field of a request that the upstream's API has no counterpart for, where the client
    speaks another one. Refuse: the request is refused, and the field named. Drop: it is left out, and named
    in the answer."""
    anthropic_betas: Annotated[tuple[Beta, ...] | None, Field(max_length=32, json_schema_extra=SET)] = None
    """Values of the header anthropic-beta that clients may send to an upstream of type Anthropic; others are
    left out, and named in the answer. Absent: those that cost nothing more, keep nothing there and reach
    nothing else."""


class ModelRoute(Section):
    """A model that clients may name."""

    name: ModelName
    """Name in the client's request."""
    provider: ResourceName
    """The provider that serves it: a name from spec.providers."""
    upstream_model: ModelName | None = None
    """Name the provider knows it by. Absent: the same name."""
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 4096
    """What a request that sets no maximum reserves of a tenant's token limits for its answer."""
