"""Who may use the gateway, how they show who they are, and how much they may use."""

from __future__ import annotations

from typing import Annotated, Literal

from proofgate_schema.fields import FilePath, Listed, Name, NonEmptyListed
from proofgate_schema.payloads import PayloadMode
from proofgate_schema.section import Section
from proofgate_schema.terms import DeniedBeta, GuardedTools, HostedTools, ModelBudget, Quota
from proofgate_schema.urls import KeySetURL
from pydantic import Field

from proofgate.config.fields import Claim, Instant
from proofgate.config.policy import TenantPolicy

Endpoint = Literal[
    "ChatCompletions",
    "Completions",
    "Responses",
    "Embeddings",
    "Moderations",
    "ImagesGenerations",
    "AudioSpeech",
    "AudioTranscriptions",
    "AudioTranslations",
    "ImageEdits",
    "ImageVariations",
    "Files",
    "Batches",
    "Messages",
    "GenerateContent",
    "EmbedContent",
    "Models",
    "Receipts",
]
# Asymmetric only: with HS256, whoever can check a token can make one (RFC 8725, section 3.1).
Algorithm = Literal["RS256", "ES256", "EdDSA"]


class Key(Section):
    """An API key, known by its SHA-256."""

    hash: str
    """64 lower-case hexadecimal digits, as `proofgate hash-key` prints them."""
    expires_at: Instant | None = None
    """When it stops to work, RFC 3339; never when it is not set."""


class Plan(Section):
    """What a tenant may call, and how much it may use. Tenants name it."""

    name: Name
    """Letters, digits and `. _ -`, at most 63, unique."""
    models: Listed[str] | None = None
    """The models it may ask for; all when it is not set."""
    endpoints: Listed[Endpoint] | None = None
    """The endpoints it may call; all when it is not set."""
    hosted_tools: HostedTools = HostedTools()
    """Which tools providers may run for it; none by default."""
    guarded_tools: GuardedTools | None = None
    """Tools that may not be called after a flagged text of a tool; none by default."""
    denied_betas: Annotated[Listed[DeniedBeta], Field(max_length=32)] = ()
    """Features of Anthropic's API that it may not use, by the names of their betas with or without the date:
    the value of `anthropic-beta` and the fields of the body that belong to it are left out together, and
    named in the answer."""
    limits: Quota = Quota()
    """Of the tenant as a whole."""
    key_limits: Quota = Quota()
    """Of each of its API keys by itself."""
    model_budgets: Listed[ModelBudget] = ()
    """What may be spent on models, with all keys together; each model once."""
    wait_seconds: Annotated[float, Field(ge=0, le=60)] = 5.0
    """How long a request waits, 0 to 60, that fits once others have given back what they reserved and did not
    use; with 0 it is told to come back at once."""
    policy: TenantPolicy | None = None
    """Where the tenant's policy differs from the gateway's."""
    policies: Listed[str] = ()
    """Names of `policies` that its requests ask for, in this order, once the rules have let them pass."""
    payloads: PayloadMode | None = None
    """Whether requests and answers are stored; as `ledger.payloads` says when it is not set."""


class NamedPlan(Plan):
    """A plan that tenants name, also those that come in shards."""

    namespace_limits: Quota = Quota()
    """What the tenants of `tenantShards` share that have this plan and are of one namespace, by their names
    `<namespace>/<name>`: of all of them together, besides `limits` of each. `tenants` share nothing."""


class TenantShards(Section):
    """Tenants and keys that come and go without a new configuration, in 32 parts that change one by one."""

    directory: FilePath
    """Where `00/keys`, `00/tenants` … `31/tenants` are; what is not there is empty."""


class Tenant(Plan):
    """Who is audited and limited; known by the SHA-256 of its API keys, or by a claim of a token."""

    plan: str | None = None
    """The plan that holds for it, in the place of its own models, endpoints, tools, denied betas, limits,
    budgets, wait, policy, policies and payloads."""
    key_hashes: Listed[str] = ()
    """Keys that never expire."""
    key_hashes_file: FilePath | None = None
    """One hash for each line, `<hash>` or `<hash> expires=<RFC 3339>`; `#` begins a comment."""
    keys: Listed[Key] = ()
    """Keys that may expire."""

    @property
    def has_own_terms(self) -> bool:
        """Whether it says itself what a plan says."""
        return bool(self.model_fields_set & Plan.model_fields.keys() - {"name"})


class Issuer(Section):
    """Who signs JSON Web Tokens that are believed, and where its keys are. One of jwksURL and jwksFile."""

    issuer: Claim
    """The token's `iss`, byte for byte."""
    audiences: NonEmptyListed[Claim]
    """One of them has to be in the token's `aud`."""
    jwks_url: Annotated[KeySetURL | None, Field(alias="jwksURL")] = None
    """Where the issuer publishes its keys (RFC 7517); https, or http on loopback."""
    jwks_file: FilePath | None = None
    """A file with its keys (RFC 7517)."""
    algorithms: NonEmptyListed[Algorithm] = ("RS256", "ES256", "EdDSA")
    """The signatures that are accepted."""
    tenant_claim: Claim = "tenant"
    """The claim that names the tenant."""
    leeway_seconds: Annotated[int, Field(ge=0, le=600)] = 60
    """How far clocks may differ, 0 to 600 seconds."""
    refresh_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300
    """How often jwksURL is read again, 10 to 86400 seconds; sooner when a token names an unknown key."""


class Jwt(Section):
    """JSON Web Tokens in the place of API keys."""

    issuers: NonEmptyListed[Issuer]
    """Each `issuer` once."""
