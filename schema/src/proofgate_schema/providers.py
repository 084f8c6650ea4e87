"""The fields of the section `providers` that the gateway's file and a manifest share: where requests go."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofgate_schema.annotations import UNIQUE_ITEMS
from proofgate_schema.fields import DNS_LABEL, Name, TenantName, TupleOf
from proofgate_schema.section import Section
from proofgate_schema.static_fields import BodyFields
from proofgate_schema.timeouts import ProviderTimeouts
from proofgate_schema.urls import BaseURL

#: A region of Google Cloud, or `global`.
LOCATION_PATTERN = "^[a-z]+(-[a-z0-9]+)*$"

Beta = Annotated[str, Field(min_length=1, max_length=64, pattern="^[a-z0-9][-a-z0-9]*$")]

PerMinute = Annotated[int, Field(ge=1, le=1_000_000_000)]


class ProviderLimits(Section):
    """The part of the provider's own limits per minute for its key that each worker may use."""

    requests_per_minute: PerMinute | None = None
    """Requests that each worker may send to the provider in a minute. At most a sixth of this number can be
    sent in one burst, but at least one request. Absent: unlimited."""
    tokens_per_minute: PerMinute | None = None
    """Tokens of prompts and responses that each worker may use at the provider in a minute. A request in
    flight counts with its estimate, then with the usage that the provider reports. Absent: unlimited."""


class Provider(Section):
    """A provider of models. The file and the manifest each have their own fields for keys, certificates and
    header fields, which can be secrets."""

    name: Annotated[
        Name,
        DNS_LABEL,
    ]
    """Name of the provider, to which models refer."""
    type: Literal["OpenAI", "AzureOpenAI", "Anthropic", "Gemini", "Bedrock", "VertexAI"]
    """API of the provider. OpenAI: also vLLM, Ollama and many others. AzureOpenAI: OpenAI's API with Azure's
    header for the key. The names of models are the names of their deployments (see api). Anthropic: the
    Messages API. Gemini: Google's Gemini API. Bedrock: Amazon Bedrock. Chat completions are sent through
    Converse; requests of Anthropic's API to Claude models are forwarded unchanged. VertexAI: Google Cloud.
    Gemini models have the API of type Gemini, and Claude models have the API of type Anthropic."""
    base_url: Annotated[BaseURL | None, Field(alias="baseURL")] = None
    """Base URL of the API, for example https://api.openai.com/v1, https://RESOURCE.openai.azure.com/openai/v1
    (without v1 if api is Deployments), https://api.anthropic.com/v1,
    https://generativelanguage.googleapis.com/v1beta or https://bedrock-runtime.REGION.amazonaws.com (or the
    URL of a VPC endpoint). The URL must not have a user name, query or fragment. Required for all types
    except VertexAI. The default for VertexAI is https://LOCATION-aiplatform.googleapis.com/v1
    (https://aiplatform.googleapis.com/v1 for location global)."""
    region: Annotated[str, Field(max_length=32, pattern=r"^[a-z]{2,}(-[a-z0-9]+)+$")] | None = None
    """AWS region for which requests are signed, for example us-east-1. Required with AWS credentials."""
    project: Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9][-a-z0-9.:]*$")] | None = None
    """Id of the Google Cloud project that has the models, for type VertexAI."""
    location: Annotated[str, Field(max_length=32, pattern=LOCATION_PATTERN)] | None = None
    """Google Cloud location of the models: a region, for example europe-west1, or global."""
    api: Literal["V1", "Deployments"] = "V1"
    """Form of Azure's API, for type AzureOpenAI. V1: the body names the deployment. Deployments: the path
    names the deployment, as /deployments/NAME/chat/completions?api-version=VERSION."""
    api_version: (
        Annotated[str, Field(max_length=32, pattern=r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}(-preview)?$")] | None
    ) = None
    """Version of Azure's API in requests if api is Deployments, for example 2024-10-21."""
    arn_in_path: Literal["Encoded", "Literal"] = "Encoded"
    """Notation of a model's ARN in the path of a request, for type Bedrock. Encoded: as one percent-encoded
    segment, as in AWS's own clients. Literal: with its colons and slashes, which some application inference
    profiles reportedly need."""
    stream_usage: Literal["Ask", "Leave"] = "Ask"
    """Whether the gateway requests the usage of a stream when the client does not. Ask: the gateway requests
    the usage. Leave: the gateway does not request the usage, for providers that refuse stream_options."""
    responses: Literal["Auto", "Native", "Translated"] = "Auto"
    """Form in which Responses requests are sent to a provider of type OpenAI or AzureOpenAI. Native: to its
    own /responses. Translated: as chat completions, for a provider without /responses. Auto: Translated for
    hosts known to have no /responses (the APIs of Google, Mistral, Cohere and MiniMax), Native otherwise."""
    untranslatable_fields: Literal["Refuse", "Drop"] = "Refuse"
    """Treatment of a request field that has no counterpart in the provider's API, if the client uses a
    different API. Refuse: the request is refused with an error that names the field. Drop: the field is left
    out, and the response names it."""
    anthropic_betas: Annotated[TupleOf[Beta], Field(max_length=32), UNIQUE_ITEMS] | None = None
    """Values of the header anthropic-beta that clients may send to a provider of type Anthropic, Bedrock or
    VertexAI. Other values are left out together with their body fields, and the response names them. Absent:
    all values pass."""
    objects_of: TenantName | None = None
    """Tenant whose files and batches (/v1/files, /v1/batches) this provider stores: a name from `tenants`, or
    NAMESPACE/NAME of a GatewayTenant. For type OpenAI, and AzureOpenAI with api V1. The provider's key gives
    access to all files and batches, so other tenants cannot use files or batches of this provider, and the
    key should belong to a separate project. A tenant can have one such provider. Absent: the provider stores
    no objects."""
    max_concurrent_requests: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Maximum requests that each worker may have in flight at the provider. Further requests go to another
    provider of the model, or are refused. Absent: unlimited."""
    min_idle_connections: Annotated[int, Field(ge=0, le=64)] = 0
    """Idle connections that each worker keeps open to the provider, so that a request after a pause does not
    wait for DNS, TCP and TLS. One HTTP/2 session counts as all of these connections. 0: connections are
    opened only when needed. The provider also sees idle connections."""
    http: Literal["Auto", "Http1", "Http2"] = "Http1"
    """HTTP version for the provider. Auto: HTTP/2 if the provider chooses it in TLS (ALPN), otherwise
    HTTP/1.1. Http1: HTTP/1.1 only. Http2: HTTP/2 only; requests to a provider without HTTP/2 fail. With an
    http:// URL, Auto uses HTTP/1.1, and Http2 uses HTTP/2 without negotiation (prior knowledge)."""
    body_fields: BodyFields | None = None
    """Top-level fields to set in every JSON body that is sent to the provider, by name, for example
    `provider` for OpenRouter. At most 16 fields are allowed, and no fields that the workers read themselves (such as
    model, max_tokens and tools). They replace a client's fields of the same name, and the response names the
    replaced fields. Do not put secrets here: the fields are stored in a ConfigMap."""
    limits: ProviderLimits | None = None
    """The provider's own limits per minute. Each worker enforces them independently, so divide the key's
    limits by the number of workers. Further requests go to another provider of the model, or are refused with
    the time after which to retry. Absent: none."""
    timeouts: ProviderTimeouts | None = None
    """Time limits for this provider alone, for example for models that take long before they respond. If
    absent, the same as `timeouts`."""
