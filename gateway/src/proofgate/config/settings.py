"""What the worker's YAML file may say: one frozen model per section, every default and every bound.

Durations are seconds and sizes are bytes, as the field names say; paths start at the file's directory. Who
may do what stands in `access`, the rules over prompts and answers in `policy`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import proofgate_schema.egress
import proofgate_schema.ledger
import proofgate_schema.providers
from proofgate_schema.analysis import Analysis
from proofgate_schema.cors import Cors
from proofgate_schema.external_policies import ExternalPolicy
from proofgate_schema.fields import FilePath, Listed, NonEmptyListed
from proofgate_schema.limits import Limits
from proofgate_schema.metrics import Metrics
from proofgate_schema.models import Model
from proofgate_schema.policy import Policy
from proofgate_schema.prices import Price
from proofgate_schema.providers import LOCATION
from proofgate_schema.section import Section
from proofgate_schema.timeouts import Timeouts
from proofgate_schema.urls import BaseURL
from pydantic import Field, model_validator

from proofgate.config.access import Jwt, Plan, Tenant, TenantShards
from proofgate.config.auth import Auth
from proofgate.config.fields import (
    Address,
    DnsName,
    LogOrigin,
    NoProxyEntry,
)
from proofgate.config.static_fields import ProviderHeader
from proofgate.config.telemetry import Telemetry


class HeldCheckpoints(Section):
    """Checkpoints that are held where no writer of the ledger's volume can change them.

    What a worker finds at its start must contain the one that is held of its shard, or it does not start.
    """

    directory: FilePath
    """An existing directory that is not the ledger's: one file for each shard, named by its number."""
    kept_by: Literal["Worker", "Operator"] = "Worker"
    """Who writes them: the worker itself, with each checkpoint, or somebody else; then it only reads."""


class Ledger(proofgate_schema.ledger.Ledger):
    """Where and how records are kept. Every field of it but `shredKeysDirectory`, and of `payloads` the mode
    and the size of a body, is fixed for the life of a worker."""

    name: LogOrigin
    """Name of the signing key and start of every origin: letters, digits and `. _ - /`, at most 128."""
    directory: FilePath
    """An existing directory: a volume that is not mounted is noticed."""
    signing_key_file: FilePath
    """The signing key, as `proofgate keygen` and `proofgate keys rotate` write it."""
    segment_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 30)] = 32 << 20
    """Size of one file of the log, 1 MiB to 1 GiB; one is prepared ahead."""
    held_checkpoints: HeldCheckpoints | None = None
    """Where checkpoints are held outside the ledger. Without it nothing shows that a volume was set back."""
    shred_keys_directory: FilePath | None = None
    """The folder of tenants' shred keys, not on the ledger's volume. Each tenant needs one then, and is
    refused without. It alone may change while a worker runs. Without it salts are stored whole."""


class Admin(Section):
    """The admin port. Without a token file nobody may drain, reload or profile over HTTP."""

    listen: Address = "127.0.0.1:9090"
    """Its address, another one than `listen`. Fixed for the life of a worker."""
    token_file: FilePath | None = None
    """The token, one line of at least 16 characters."""


class Tls(Section):
    """TLS towards clients; ALPN offers h2 and http/1.1. Without this section the traffic port is plain."""

    certificate_file: FilePath
    """The certificate, then its intermediates, PEM."""
    private_key_file: FilePath
    """Its private key, PEM, not encrypted."""
    min_version: Literal["1.2", "1.3"] = "1.2"
    """The oldest version of TLS that is spoken."""
    client_ca_file: FilePath | None = None
    """Certificates of authorities, PEM: a client has to show a certificate for clients that one of them has
    issued. Without it nobody is asked for one."""
    client_names: Annotated[Listed[DnsName], Field(max_length=16)] = ()
    """Of these DNS names, a client's certificate has to have one. Without any, the authority is enough."""
    accept_plain: bool = False
    """Whether connections without TLS are served as well: for the time in which a load balancer changes
    over, and only behind `proxyProtocol`."""


class Provider(proofgate_schema.providers.Provider):
    """An upstream that answers for models."""

    base_url: Annotated[BaseURL, Field(alias="baseURL")]
    auth: Auth | None = None
    """How the gateway authenticates there. Without it no credentials are sent; types `Bedrock` and `VertexAI`
    need it."""
    ca_file: FilePath | None = None
    """Certificates to trust in place of the system's roots, PEM; https only."""
    client_certificate_file: FilePath | None = None
    """The certificate that the provider asks its clients for, then its intermediates, PEM; https only."""
    client_key_file: FilePath | None = None
    """Its private key, PEM, not encrypted."""
    headers: Annotated[Listed[ProviderHeader], Field(max_length=16)] = ()
    """Header fields of every request to it, such as `OpenAI-Organization`."""

    @model_validator(mode="before")
    @classmethod
    def _with_the_url_of_its_location(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("type") != "VertexAI" or "baseURL" in given:
            return given
        location = given.get("location")
        if not isinstance(location, str) or not re.fullmatch(LOCATION, location):
            location = "global"  # what is wrong with it is reported of itself
        host = "aiplatform" if location == "global" else f"{location}-aiplatform"
        return {**given, "baseURL": f"https://{host}.googleapis.com/v1"}


class EgressProxy(proofgate_schema.egress.EgressProxy):
    """A forward proxy through which providers are reached, each connection in a tunnel (CONNECT)."""

    username_file: FilePath | None = None
    """Whom it is shown (`Proxy-Authorization: Basic`), with `passwordFile`."""
    password_file: FilePath | None = None
    """The password of that user. While one of both cannot be read, what the proxy is for is not sent."""
    no_proxy: Listed[NoProxyEntry] = ()
    """What is reached directly: a host name with all below it, `.example.com` for those below alone, an
    address or a range of addresses for URLs that have an address, each with `:PORT` for one port, or `*`.
    Loopback, link-local addresses and the metadata services of clouds always are."""


class Egress(proofgate_schema.egress.Egress):
    """Where connections to providers may lead. Without this section, everywhere but to addresses that are no
    provider's: link-local ones and others at which clouds keep a machine's metadata, multicast."""

    proxy: EgressProxy | None = None
    """A forward proxy for providers, for the token endpoints of their `auth` and for `jwksURL`."""


class Profiling(Section):
    """What is measured beyond the metrics that are always on."""

    stages: bool = False
    """A histogram for every stage of the hot path; also `PROOFGATE_PROFILE_STAGES` and the admin port."""


class ProxyProtocol(Section):
    """Every connection begins with a PROXY v2 header, as from the load balancer. Without this section clients
    connect themselves. Whether there is one is fixed for the life of a worker."""

    routing_key_file: FilePath
    """The routing key, one line of at least 16 characters. The header's unique id (TLV 0x05) is
    `<routing key>:<tenant>`, or `<routing key>:*` for a connection that any tenant may use; of what comes
    without the key, no request is served."""


class Settings(Section):
    """The configuration file as written, before the files it names are read."""

    ledger: Ledger
    listen: Address = "0.0.0.0:8080"
    """The traffic port. Fixed for the life of a worker."""
    proxy_protocol: ProxyProtocol | None = None
    admin: Admin = Admin()
    tls: Tls | None = None
    cors: Cors | None = None
    providers: NonEmptyListed[Provider]
    egress: Egress | None = None
    models: NonEmptyListed[Model]
    prices: Listed[Price] = ()
    default_prices: bool = False
    """Whether the prices that come with the gateway hold where `prices` say nothing. They are dated, and as
    old as the gateway: `proofgate prices` lists what holds."""
    plans: Listed[Plan] = ()
    tenants: Listed[Tenant] = ()
    tenant_shards: TenantShards | None = None
    jwt: Jwt | None = None
    policy: Policy = Policy()
    policies: Listed[ExternalPolicy] = ()
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    metrics: Metrics = Metrics()
    profiling: Profiling = Profiling()
    telemetry: Telemetry = Telemetry()
    analysis: Analysis | None = None
