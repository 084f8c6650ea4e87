"""What a file and a manifest say alike of the section `providers`: where requests go."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofgate_schema.annotations import SET
from proofgate_schema.fields import DNS_LABEL, Listed, Name, TenantName
from proofgate_schema.section import Section
from proofgate_schema.static_fields import BodyFields
from proofgate_schema.timeouts import ProviderTimeouts
from proofgate_schema.urls import BaseURL

#: A region of Google Cloud, or all of them.
LOCATION = "^[a-z]+(-[a-z0-9]+)*$"

Beta = Annotated[str, Field(min_length=1, max_length=64, pattern="^[a-z0-9][-a-z0-9]*$")]

PerMinute = Annotated[int, Field(ge=1, le=1_000_000_000)]


class ProviderLimits(Section):
    """What a provider allows whoever its key is of in a minute, as far as each worker may use it."""

    requests_per_minute: PerMinute | None = None
    """Requests that each worker may send there in a minute, ten seconds' worth of them at once. Absent: any
    number."""
    tokens_per_minute: PerMinute | None = None
    """Tokens of prompts and answers that each worker may use there in a minute. A request under way counts
    with its estimate, then with what the provider says was used. Absent: any number."""


class Provider(Section):
    """An upstream that answers model requests. Keys, certificates and header fields may be secrets: each side
    has fields of its own for them."""

    name: Annotated[
        Name,
        DNS_LABEL,
    ]
    """Name that models refer to."""
    type: Literal["OpenAI", "AzureOpenAI", "Anthropic", "Gemini", "Bedrock", "VertexAI"]
    """Protocol of the upstream. OpenAI is that of vLLM, Ollama and many others, too; AzureOpenAI is the same
    with Azure's field for the key (models are named by their deployments; see api). Bedrock is Amazon's:
    Converse for clients of chat completions, and Claude models as they are for clients of Anthropic's API.
    VertexAI is Google Cloud's: Gemini as of type Gemini, and Claude models as of type Anthropic."""
    base_url: Annotated[BaseURL | None, Field(alias="baseURL")] = None
    """Where the API begins, for example https://api.openai.com/v1, https://RESOURCE.openai.azure.com/openai/v1
    (with api Deployments without the v1),
    https://api.anthropic.com/v1, https://generativelanguage.googleapis.com/v1beta or
    https://bedrock-runtime.REGION.amazonaws.com (or that of a VPC endpoint). No user name, query or
    fragment. Every type needs one but VertexAI, where it is https://LOCATION-aiplatform.googleapis.com/v1
    (https://aiplatform.googleapis.com/v1 of the location global) unless it is set."""
    region: Annotated[str, Field(max_length=32, pattern=r"^[a-z]{2,}(-[a-z0-9]+)+$")] | None = None
    """The region of AWS that requests are signed for, for example us-east-1. With auth of AWS it has to be
    there."""
    project: Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9][-a-z0-9.:]*$")] | None = None
    """The id of the project of Google Cloud whose models an upstream of type VertexAI has."""
    location: Annotated[str, Field(max_length=32, pattern=LOCATION)] | None = None
    """Where they are: a region, for example europe-west1, or global."""
    api: Literal["V1", "Deployments"] = "V1"
    """Which form of Azure's API an upstream of type AzureOpenAI has. V1 names the deployment in the body,
    Deployments in the path, as /deployments/NAME/chat/completions?api-version=VERSION."""
    api_version: (
        Annotated[str, Field(max_length=32, pattern=r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}(-preview)?$")] | None
    ) = None
    """The version of Azure's API that requests name with api Deployments, for example 2024-10-21."""
    arn_in_path: Literal["Encoded", "Literal"] = "Encoded"
    """How a model that is named by an ARN stands in the path of a request to an upstream of type Bedrock: as
    one segment, percent-encoded, as AWS's own clients write it, or with its colons and slashes as they are,
    which some application inference profiles were said to want."""
    stream_usage: Literal["Ask", "Leave"] = "Ask"
    """Whether a stream is asked for its usage when the client does not ask. Leave is for an upstream that
    refuses stream_options."""
    responses: Literal["Auto", "Native", "Translated"] = "Auto"
    """How Responses reach an upstream of type OpenAI or AzureOpenAI. Native: at its own /responses.
    Translated: as chat completions, for one that has no /responses. Auto: Translated at hosts that are known
    to have none (Google's, Mistral's, Cohere's and MiniMax's APIs), Native elsewhere."""
    untranslatable_fields: Literal["Refuse", "Drop"] = "Refuse"
    """What becomes of a field of a request that the upstream's API has no counterpart for, where the client
    speaks another one. Refuse: the request is refused, and the field named. Drop: it is left out, and named
    in the answer."""
    anthropic_betas: Annotated[Listed[Beta], Field(max_length=32), SET] | None = None
    """The only values of the header anthropic-beta that clients may send to an upstream of type Anthropic,
    Bedrock or VertexAI; others are left out, with the fields of the body that belong to them, and named in
    the answer. Absent: all pass."""
    objects_of: TenantName | None = None
    """The tenant whose files and batches (/v1/files, /v1/batches) this upstream keeps: a name from
    `tenants`, or NAMESPACE/NAME of a GatewayTenant. For type OpenAI, and AzureOpenAI with api V1. A client
    with its key sees them, so no other tenant may ask for any there, and the key should be of a project of
    its own. A tenant has one such upstream. Absent: it keeps nobody's."""
    max_concurrent_requests: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Requests that each worker may have under way there at a time. What is over goes to another upstream of
    its model, or is refused. Absent: any number."""
    min_idle_connections: Annotated[int, Field(ge=0, le=64)] = 0
    """Connections that each worker keeps ready there, so that a request after a silence does not wait for its
    name, TCP and TLS. 0: none is made before it is needed, for an upstream sees those that nobody uses,
    too. Of HTTP/2 one session counts as all of them."""
    http: Literal["Auto", "Http1", "Http2"] = "Http1"
    """Which HTTP is spoken there. Auto: HTTP/2 where the upstream chooses it in TLS (ALPN), and HTTP/1.1
    elsewhere. Http2: nothing but HTTP/2; requests fail that find an upstream without it. With an http:// URL
    it is spoken without asking (prior knowledge)."""
    body_fields: BodyFields | None = None
    """Top-level fields that are set in every JSON body that it is sent, by name, for example provider of
    OpenRouter: at most 16, and none that the workers read themselves (model, max_tokens, tools and the like).
    They take the place of a client's own, which are named in the answer. No secrets: they stand in a
    ConfigMap."""
    limits: ProviderLimits | None = None
    """What the upstream allows in a minute: each worker keeps to it by itself, so of several each gets its
    part of what the key has. What is over goes to another upstream of its model, or is refused with the time
    to retry."""
    timeouts: ProviderTimeouts | None = None
    """Time limits for this upstream alone, for example one whose models think long before they answer."""
