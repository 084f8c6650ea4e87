"""The parts of the spec that say where requests go: providers, and the models that they serve.

Workers take on a change of them while they run.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from proofgate_schema.providers import ProviderLimits
from proofgate_schema.timeouts import ProviderTimeouts
from proofgate_schema.urls import AUTHORITY, BASE_URL, LABEL, PORT
from pydantic import Field

from proofgate_operator.api.auth import AUTH_RULES, Auth, provider_types_rules
from proofgate_operator.api.fields import (
    SET,
    Cidr,
    ConfigMapKeyRef,
    ResourceName,
    SecretKeyRef,
    SecretRef,
    Section,
    rules,
)
from proofgate_operator.api.static_fields import STATIC_RULES, BodyFields, Headers

#: Files of a provider in the workers that are PEM, and not one line.
CA_FILE = "ca.crt"
CLIENT_CERTIFICATE_FILE = "client.crt"
CLIENT_KEY_FILE = "client.key"
PEM_FILES = frozenset((CA_FILE, CLIENT_CERTIFICATE_FILE, CLIENT_KEY_FILE))

Beta = Annotated[str, Field(min_length=1, max_length=64, pattern="^[a-z0-9][-a-z0-9]*$")]

#: A name from spec.tenants, or namespace and name of a GatewayTenant.
TenantName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=317,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
    ),
]

#: A host name, an address or a range, one port of either, or everything.
NoProxyEntry = Annotated[
    str,
    Field(
        min_length=1,
        max_length=300,
        pattern=rf"^(\*|(\*?\.)?{LABEL}(\.{LABEL})*\.?{PORT}|\[[0-9A-Fa-f:.]+\]{PORT}"
        r"|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|[0-9A-Fa-f:.]+/[0-9]{1,3})$",
    ),
]

#: Rules over the fields of one provider.
PROVIDER_RULES: tuple[dict[str, Any], ...] = (
    *provider_types_rules(),
    *STATIC_RULES,
    {
        "rule": "self.type == 'Bedrock' || !has(self.region)",
        "message": "providers: region is for type Bedrock alone",
    },
    {
        "rule": "self.api == 'V1' || self.type == 'AzureOpenAI'",
        "message": "providers: api Deployments is for type AzureOpenAI alone",
    },
    {
        "rule": "(self.api == 'Deployments') == has(self.apiVersion)",
        "message": "providers: apiVersion is for api Deployments, which needs one",
    },
    {
        "rule": "has(self.region) || self.type != 'Bedrock' || !has(self.auth) || self.auth.type == 'APIKey'",
        "message": "providers: auth of AWS needs a region, for which requests are signed",
    },
    {
        "rule": "self.type == 'VertexAI' || !has(self.project) && !has(self.location)",
        "message": "providers: project and location are for type VertexAI alone",
    },
    {
        "rule": "self.type != 'VertexAI' || has(self.project) && has(self.location)",
        "message": "providers: one of type VertexAI has a project and a location",
    },
    {
        "rule": "self.type == 'VertexAI' || has(self.baseURL)",
        "message": "providers: each needs a baseURL, except of type VertexAI",
    },
    {
        "rule": "!has(self.objectsOf) || self.type == 'OpenAI' ||"
        " self.type == 'AzureOpenAI' && self.api == 'V1'",
        "message": "providers: objectsOf is for type OpenAI, and AzureOpenAI with api V1, alone",
    },
    {
        "rule": "!has(self.tls) || !has(self.baseURL) || self.baseURL.startsWith('https://')",
        "message": "providers: tls is for a baseURL with https",
    },
    {
        "rule": "!has(self.tls) || !has(self.tls.caSecretRef) || !has(self.tls.caConfigMapRef)",
        "message": "providers: tls has its authorities in a Secret or in a ConfigMap, not in both",
    },
)


class ProviderTls(Section):
    """TLS to an upstream that is behind an authority of your own, or asks for a certificate (mutual TLS)."""

    ca_secret_ref: SecretKeyRef | None = None
    """Certificates of the authorities to trust in the place of the system's, PEM, in a Secret."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """The same in a ConfigMap. The operator reads none of yours: what is wrong with it, the workers say."""
    client_certificate_secret_ref: SecretRef | None = None
    """Secret of type kubernetes.io/tls in the gateway's namespace, for example that of a cert-manager
    Certificate: what workers show to the upstream. A renewed one is used for new connections within
    seconds."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs, as those of a provider."""
        if self.ca_secret_ref is not None:
            yield "tls.caSecretRef", CA_FILE, self.ca_secret_ref
        client = self.client_certificate_secret_ref
        if client is not None:
            for file, key in ((CLIENT_CERTIFICATE_FILE, "tls.crt"), (CLIENT_KEY_FILE, "tls.key")):
                yield "tls.clientCertificateSecretRef", file, SecretKeyRef(name=client.name, key=key)


class Provider(Section):
    """An upstream that answers model requests."""

    name: ResourceName
    """Name that models refer to."""
    type: Literal["OpenAI", "AzureOpenAI", "Anthropic", "Gemini", "Bedrock", "VertexAI"]
    """Protocol of the upstream. OpenAI is that of vLLM, Ollama and many others, too; AzureOpenAI is the same
    with Azure's field for the key (models are named by their deployments; see api). Bedrock is Amazon's:
    Converse for clients of chat completions, and Claude models as they are for clients of Anthropic's API.
    VertexAI is Google Cloud's: Gemini as of type Gemini, and Claude models as of type Anthropic."""
    base_url: Annotated[str | None, Field(alias="baseURL", max_length=512, pattern=BASE_URL)] = None
    """Where the API begins, for example https://api.openai.com/v1, https://RESOURCE.openai.azure.com/openai/v1
    (with api Deployments without the v1),
    https://api.anthropic.com/v1, https://generativelanguage.googleapis.com/v1beta or
    https://bedrock-runtime.REGION.amazonaws.com (or that of a VPC endpoint). No user name, query or
    fragment. Every type needs one but VertexAI, where it is https://LOCATION-aiplatform.googleapis.com/v1
    (https://aiplatform.googleapis.com/v1 of the location global) unless it is set."""
    auth: Annotated[Auth | None, Field(json_schema_extra=rules(*AUTH_RULES))] = None
    """How workers authenticate there. Absent: the upstream wants no credentials. Types Bedrock and VertexAI
    need it."""
    tls: ProviderTls | None = None
    """Whom workers trust there, and what they show. Mounted, and used when it changes, as keys are; while a
    part is missing, nothing is sent there."""
    region: Annotated[str | None, Field(max_length=32, pattern=r"^[a-z]{2,}(-[a-z0-9]+)+$")] = None
    """The region of AWS that requests are signed for, for example us-east-1. With auth of AWS it has to be
    there."""
    project: Annotated[str | None, Field(max_length=64, pattern=r"^[a-z0-9][-a-z0-9.:]*$")] = None
    """The id of the project of Google Cloud whose models an upstream of type VertexAI has."""
    location: Annotated[str | None, Field(max_length=32, pattern=r"^[a-z]+(-[a-z0-9]+)*$")] = None
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
    anthropic_betas: Annotated[tuple[Beta, ...] | None, Field(max_length=32, json_schema_extra=SET)] = None
    """The only values of the header anthropic-beta that clients may send to an upstream of type Anthropic,
    Bedrock or VertexAI; others are left out, with the fields of the body that belong to them, and named in
    the answer. Absent: all pass."""
    objects_of: TenantName | None = None
    """The tenant whose files and batches (/v1/files, /v1/batches) this upstream keeps: a name from
    spec.tenants, or NAMESPACE/NAME of a GatewayTenant. For type OpenAI, and AzureOpenAI with api V1. Whoever
    has its key sees them, so no other tenant may ask for any there, and the key should be of a project of its
    own. A tenant has one such upstream. Absent: it keeps nobody's."""
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
    headers: Headers = ()
    """Header fields of every request to it."""
    body_fields: BodyFields | None = None
    """Top-level fields that are set in every JSON body that it is sent, by name, for example provider of
    OpenRouter: at most 16, and none that the workers read themselves (model, max_tokens, tools and the like).
    They take the place of a client's own, which are named in the answer. No secrets: they stand in a
    ConfigMap."""
    limits: ProviderLimits | None = None
    """What the upstream allows in a minute: each worker keeps to it by itself, so of several each gets its
    part of what the key has. What is over goes to another upstream of its model, or is refused and told when
    to come back."""
    timeouts: ProviderTimeouts | None = None
    """Time limits for this upstream alone, for example one whose models think long before they answer."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs: its field, its file in workers, and where it is."""
        if self.auth is not None:
            yield from self.auth.secrets()
        if self.tls is not None:
            yield from self.tls.secrets()
        for header in self.headers:
            if header.secret_ref is not None:
                yield f"headers[{header.name}].secretRef", header.file, header.secret_ref


class EgressProxy(Section):
    """A forward proxy for what leaves the workers: each connection is a tunnel (CONNECT), TLS inside it."""

    url: Annotated[str, Field(max_length=300, pattern=rf"^http://{AUTHORITY}/?$")]
    """Where it is, for example http://proxy.example.com:3128. TLS with the proxy itself is not spoken."""
    credentials_secret_ref: SecretRef | None = None
    """Secret of type kubernetes.io/basic-auth in the gateway's namespace, with username and password
    (printable ASCII without spaces, no colon in the name): sent as Proxy-Authorization: Basic. Mounted, and
    used when it changes, as keys are; while it is missing, nothing is sent through the proxy. Absent: it
    wants none."""
    no_proxy: Annotated[tuple[NoProxyEntry, ...], Field(max_length=64, json_schema_extra=SET)] = ()
    """What is reached directly, as curl and Go read NO_PROXY: a name with all below it (example.com), those
    below alone (.svc), an address or a range (10.0.0.0/8) for URLs that have an address, each with :PORT for
    one port, or `*`. Loopback, link-local addresses and the metadata services of clouds always are."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs: its field, its file in workers, and where it is."""
        if self.credentials_secret_ref is not None:
            for entry in ("username", "password"):
                reference = SecretKeyRef(name=self.credentials_secret_ref.name, key=entry)
                yield "proxy.credentialsSecretRef", entry, reference


class Egress(Section):
    """Where workers may connect to reach providers, and through what."""

    allow: Annotated[tuple[Cidr, ...] | None, Field(min_length=1, max_length=32, json_schema_extra=SET)] = (
        None
    )
    """Ranges of addresses, for example 10.0.0.0/8: what a provider's name resolves to must be in one. With a
    proxy all of its addresses must be. Absent: every address but link-local ones and others at which clouds
    keep a machine's metadata, and multicast."""
    proxy: EgressProxy | None = None
    """A forward proxy for providers, for the token endpoints of their auth and for jwksURL. Absent: workers
    connect to them directly."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs, as those of a proxy."""
        if self.proxy is not None:
            yield from self.proxy.secrets()
