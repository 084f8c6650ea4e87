"""The schema of the worker's YAML file: one frozen model per section, with all defaults and limits.

Durations are in seconds and sizes in bytes, as the field names say. Paths are relative to the file's
directory. The settings of tenants are in `access`, the rules for prompts and responses in `policy`.
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
from proofgate_schema.fields import FilePath, NonEmptyTupleOf, TupleOf
from proofgate_schema.limits import Limits
from proofgate_schema.metrics import Metrics
from proofgate_schema.models import Model
from proofgate_schema.policy import Policy
from proofgate_schema.prices import Price
from proofgate_schema.providers import LOCATION_PATTERN
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
    """Checkpoints that are stored where no writer of the ledger's volume can change them.

    The worker refuses to start unless its ledger contains the held checkpoint of its shard.
    """

    directory: FilePath
    """An existing directory outside the ledger's directory, with one file for each shard, named by its
    number."""
    kept_by: Literal["Worker", "Operator"] = "Worker"
    """Who writes the held checkpoints. Worker: the worker, with each checkpoint. Operator: another process;
    the worker only reads them."""


class Ledger(proofgate_schema.ledger.Ledger):
    """How and where records are stored. All fields are fixed for the life of a worker, except
    `shredKeysDirectory`, `recordClientAddress`, `recordEndUser` and, in `payloads`, `mode` and `maxBytes`."""

    name: LogOrigin
    """Name of the signing key and prefix of every origin: letters, digits and `. _ - /`, at most 128."""
    directory: FilePath
    """An existing directory for the ledger. The worker never creates it, so that a volume that is not mounted
    is noticed."""
    signing_key_file: FilePath
    """File with the signing key, as `proofgate keys generate` and `proofgate keys rotate` write it."""
    segment_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 30, multiple_of=8)] = 32 << 20
    """Bytes of one file of the log, a multiple of 8 from 1 MiB to 1 GiB. The next file is created in advance."""
    held_checkpoints: HeldCheckpoints | None = None
    """Location of checkpoints that are held outside the ledger. Absent: a rollback of the volume cannot be
    detected."""
    shred_keys_directory: FilePath | None = None
    """Directory of tenants' shred keys, outside the ledger's volume. A tenant without a key is refused. Can
    change while a worker runs. Absent: the volume stores complete salts."""


class Admin(Section):
    """The admin port. Without a token file, drain, reload and profiling are disabled over HTTP."""

    listen: Address = "127.0.0.1:9090"
    """Address of the admin port, different from the traffic port. Fixed for the life of a worker."""
    token_file: FilePath | None = None
    """File with the admin token: one line of at least 16 characters. Absent: requests that need the token are
    refused."""


class Tls(Section):
    """TLS for clients; ALPN offers h2 and http/1.1. Without this section the traffic port uses plain HTTP."""

    certificate_file: FilePath
    """The server certificate and its intermediates, PEM."""
    private_key_file: FilePath
    """Private key of the certificate, PEM, not encrypted."""
    min_version: Literal["1.2", "1.3"] = "1.2"
    """Minimum TLS version."""
    client_ca_file: FilePath | None = None
    """CA certificates (PEM) for client certificates. Every client must present a client certificate issued by
    one of them. Absent: no client certificate is requested."""
    client_names: Annotated[TupleOf[DnsName], Field(max_length=16)] = ()
    """DNS names, one of which a client's certificate must contain. Empty: any certificate of the CAs is
    accepted."""
    accept_plain: bool = False
    """Whether connections without TLS are also served, while a load balancer is switched to TLS. Only with
    `proxyProtocol`."""


class Provider(proofgate_schema.providers.Provider):
    """A provider of models."""

    base_url: Annotated[BaseURL, Field(alias="baseURL")]
    auth: Auth | None = None
    """How the gateway authenticates to the provider. Absent: without credentials. Required for types
    `Bedrock` and `VertexAI`."""
    ca_file: FilePath | None = None
    """CA certificates (PEM) to trust instead of the system's; https only."""
    client_certificate_file: FilePath | None = None
    """Client certificate for the provider, then its intermediates, PEM; https only. Absent: none."""
    client_key_file: FilePath | None = None
    """Private key of the client certificate, PEM, not encrypted."""
    headers: Annotated[TupleOf[ProviderHeader], Field(max_length=16)] = ()
    """Header fields of every request to the provider, such as `OpenAI-Organization`."""

    @model_validator(mode="before")
    @classmethod
    def _fill_base_url_from_location(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("type") != "VertexAI" or "baseURL" in given:
            return given
        location = given.get("location")
        if not isinstance(location, str) or not re.fullmatch(LOCATION_PATTERN, location):
            location = "global"  # an invalid location is reported separately
        host = "aiplatform" if location == "global" else f"{location}-aiplatform"
        return {**given, "baseURL": f"https://{host}.googleapis.com/v1"}


class EgressProxy(proofgate_schema.egress.EgressProxy):
    """A forward proxy for connections to providers, each in a tunnel (CONNECT)."""

    username_file: FilePath | None = None
    """File with the user name for the proxy (`Proxy-Authorization: Basic`), together with `passwordFile`."""
    password_file: FilePath | None = None
    """File with the password of that user. While either file cannot be read, nothing is sent through the
    proxy."""
    no_proxy: TupleOf[NoProxyEntry] = ()
    """Destinations that bypass the proxy: a host name with its subdomains, `.example.com` for the subdomains
    only, an address or address range for URLs with an IP address, each optionally with `:PORT`, or `*`.
    Loopback, link-local addresses and metadata services of clouds always bypass it."""


class Egress(proofgate_schema.egress.Egress):
    """Addresses to which workers may connect to reach providers. Without this section: all addresses except
    link-local addresses, multicast addresses, and addresses of cloud metadata services."""

    proxy: EgressProxy | None = None
    """Forward proxy for requests to providers, to the token endpoints of providers' `auth`, and to `jwksURL`.
    Absent: workers connect directly."""


class Profiling(Section):
    """Measurements in addition to the metrics that are always on."""

    stages: bool = False
    """Whether the worker measures the stages of each request in histograms; also set by
    `PROOFGATE_PROFILE_STAGES` and at the admin port."""


class ProxyProtocol(Section):
    """Every connection starts with a PROXY v2 header from the load balancer. Without this section, clients
    connect directly. The presence of this section is fixed for the life of a worker."""

    routing_key_file: FilePath
    """File with the routing key: one line of at least 16 characters. The header's unique id (TLV 0x05) is
    `<routing key>:<tenant>`, or `<routing key>:*` for a connection that any tenant may use. Requests on
    connections without the key are refused."""


class Settings(Section):
    """The configuration file as written, before the files that it refers to are read."""

    ledger: Ledger
    listen: Address = "0.0.0.0:8080"
    """Address of the traffic port. Fixed for the life of a worker."""
    proxy_protocol: ProxyProtocol | None = None
    admin: Admin = Admin()
    tls: Tls | None = None
    cors: Cors | None = None
    providers: NonEmptyTupleOf[Provider]
    egress: Egress | None = None
    models: NonEmptyTupleOf[Model]
    prices: TupleOf[Price] = ()
    default_prices: bool = False
    """Whether the gateway's built-in prices apply if `prices` contains no match. Each built-in
    price has a date, and the list is as old as the installed gateway: `proofgate gateway prices` lists the prices
    in use."""
    plans: TupleOf[Plan] = ()
    tenants: TupleOf[Tenant] = ()
    tenant_shards: TenantShards | None = None
    jwt: Jwt | None = None
    policy: Policy = Policy()
    policies: TupleOf[ExternalPolicy] = ()
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    metrics: Metrics = Metrics()
    profiling: Profiling = Profiling()
    telemetry: Telemetry = Telemetry()
    analysis: Analysis | None = None
