"""Who may use the gateway, how they show who they are, and how much they may use."""

from __future__ import annotations

import proofgate_schema.jwt
from proofgate_schema.fields import FilePath, Listed, Name, NonEmptyListed
from proofgate_schema.section import Section
from proofgate_schema.terms import Quota, Terms

from proofgate.config.fields import Instant


class Key(Section):
    """An API key, known by its SHA-256."""

    hash: str
    """64 lower-case hexadecimal digits, as `proofgate hash-key` prints them."""
    expires_at: Instant | None = None
    """When it stops to work, RFC 3339; never when it is not set."""


class Plan(Terms):
    """A plan that tenants name, also those that come in shards."""

    name: Name
    """Letters, digits and `. _ -`, at most 63, unique."""
    namespace_limits: Quota = Quota()
    """What the tenants of `tenantShards` share that have this plan and are of one namespace, by their names
    `<namespace>/<name>`: of all of them together, besides `limits` of each. `tenants` share nothing."""


class TenantShards(Section):
    """Tenants and keys that come and go without a new configuration, in 32 parts that change one by one."""

    directory: FilePath
    """Where `00/keys`, `00/tenants` … `31/tenants` are; what is not there is empty."""


class Tenant(Terms):
    """Who is audited and limited; known by the SHA-256 of its API keys, or by a claim of a token."""

    name: Name
    """Letters, digits and `. _ -`, at most 63, unique."""
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
        return bool(self.model_fields_set & Terms.model_fields.keys())


class Issuer(proofgate_schema.jwt.Issuer):
    """Who signs JSON Web Tokens that are believed, and where its keys are. One of jwksURL and jwksFile."""

    jwks_file: FilePath | None = None
    """A file with its keys (RFC 7517)."""


class Jwt(Section):
    """JSON Web Tokens in the place of API keys."""

    issuers: NonEmptyListed[Issuer]
    """Each `issuer` once."""
