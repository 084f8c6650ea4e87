"""Settings for tenants: authentication, permissions and limits."""

from __future__ import annotations

import proofgate_schema.jwt
from proofgate_schema.fields import FilePath, Name, NonEmptyTupleOf, TupleOf
from proofgate_schema.section import Section
from proofgate_schema.terms import Quota, Terms

from proofgate.config.fields import Instant


class Key(Section):
    """An API key, identified by its SHA-256."""

    hash: str
    """SHA-256 of the key: 64 lower-case hexadecimal digits, as `proofgate keys hash` prints them."""
    expires_at: Instant | None = None
    """Time at which the key expires, RFC 3339. Absent: it never expires."""
    name: Name | None = None
    """Name of the key, which the records of its requests contain: letters, digits and `. _ -`, at most 63."""


class Plan(Terms):
    """A plan to which tenants refer, including those in shards."""

    name: Name
    """Unique name: letters, digits and `. _ -`, at most 63."""
    namespace_limits: Quota = Quota()
    """Limits that all tenants of `tenantShards` with this plan in one namespace share. The `limits` of each
    tenant also apply. The namespace is the first part of the name `<namespace>/<name>`. The shared limits do
    not apply to `tenants`."""


class TenantShards(Section):
    """Tenants and keys that change without a new configuration, in 32 parts that are updated one by one."""

    directory: FilePath
    """Directory that contains `00/keys`, `00/tenants` … `31/tenants`. A missing file counts as empty."""


class Tenant(Terms):
    """A tenant that is authenticated, limited and recorded, identified by the SHA-256 of its API keys or by a
    claim of a token."""

    name: Name
    """Unique name: letters, digits and `. _ -`, at most 63."""
    plan: str | None = None
    """Name of the plan that applies, instead of the tenant's own models, endpoints, tools, denied betas,
    limits, budgets, wait, policy, policies and payloads."""
    key_hashes: TupleOf[str] = ()
    """SHA-256 of keys that never expire."""
    key_hashes_file: FilePath | None = None
    """File with one hash per line, `<hash>` or `<hash> expires=<RFC 3339>`; `#` starts a comment. A
    comment that starts with `name=<name>` names the key."""
    keys: TupleOf[Key] = ()
    """Keys that may expire."""

    @property
    def has_own_terms(self) -> bool:
        """Whether the tenant sets a field itself that a plan would set."""
        return bool(self.model_fields_set & Terms.model_fields.keys())


class Issuer(proofgate_schema.jwt.Issuer):
    """An issuer whose tokens are accepted, with either jwksURL or jwksFile."""

    jwks_file: FilePath | None = None
    """File with the issuer's keys (RFC 7517)."""


class Jwt(Section):
    """JSON Web Tokens instead of API keys."""

    issuers: NonEmptyTupleOf[Issuer]
    """Issuers whose tokens are accepted, each `issuer` once."""
