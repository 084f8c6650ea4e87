"""Who may use a gateway, how they show who they are, and how much they may use, as frozen models."""

from enum import StrEnum
from typing import Annotated

import proofgate_schema.jwt
from proofgate_schema.terms import TERMS, Quota, Terms
from proofgate_schema.urls import KeySetURL
from pydantic import Field

from proofgate_operator.api.fields import (
    LabelSelector,
    ResourceName,
    SecretKeyRef,
    Section,
    keyed_by,
    rules,
)

_SHA256 = r"^[0-9a-f]{64}$"
#: RFC 3339 (section 5.6) with capital T and Z, in this century.
_TIME = (
    r"^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)

#: With as many tenants as a gateway may list, the digests and HAProxy's map of them fit into one Secret.
MAX_KEYS_OF_A_TENANT = 32

Time = Annotated[str, Field(max_length=40, pattern=_TIME, json_schema_extra={"format": "date-time"})]


#: What a quota limits, as a manifest spells it.
LIMITS = tuple(field.alias for field in Quota.model_fields.values())


class ApiKey(Section):
    """One API key: an entry of a Secret, or its digest where the key itself shall not be in the cluster."""

    name: ResourceName
    """Name of the key among the tenant's, for people: it never stands in a request."""
    secret_ref: SecretKeyRef | None = None
    """Entry of a Secret that holds the key in clear: one line without a line end, of 20 characters or more
    that a bearer token can have (RFC 6750). Only its digest leaves the Secret."""
    sha256: Annotated[str | None, Field(min_length=64, max_length=64, pattern=_SHA256)] = None
    """The key's SHA-256 in lower-case hexadecimal, in the place of secretRef: `proofgate hash-key` prints
    it."""
    not_after: Time | None = None
    """When the key stops to work (RFC 3339, for example 2026-12-31T00:00:00Z): workers refuse it with 401
    from then on. Absent: never."""


ApiKeys = Annotated[
    tuple[
        Annotated[
            ApiKey,
            Field(
                json_schema_extra=rules(
                    {
                        "rule": "has(self.secretRef) != has(self.sha256)",
                        "message": "apiKeys: a key has either secretRef or sha256",
                    }
                )
            ),
        ],
        ...,
    ],
    Field(max_length=MAX_KEYS_OF_A_TENANT, json_schema_extra=keyed_by("name")),
]


class PlanNamespaces(Section):
    """Namespaces whose GatewayTenants may take a plan: those that are named, and those with the labels."""

    names: Annotated[tuple[ResourceName, ...] | None, Field(min_length=1, max_length=16)] = None
    """Names of namespaces; for more of them there are labels."""
    selector: LabelSelector | None = None
    """Labels of namespaces, which only an operator that serves the whole cluster may read."""


class PlanShare(Section):
    """What the GatewayTenants of one namespace may have of a plan."""

    tenants: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """How many may take the plan. Each has the plan's limits for itself. Of more, the oldest have it. Absent:
    as many as the namespace makes."""
    limits: Quota | None = None
    """What all of them may use together, besides the plan's limits for each. Exact while all of their
    connections reach one worker: they are sent to the same one, as a single tenant's are; see
    spec.loadBalancer.affinity. What one that is gone, or has another plan by now, has used still counts."""


class Plan(Terms):
    """Terms that tenants share by name."""

    name: ResourceName
    """Name that tenants refer to."""
    allowed_namespaces: Annotated[
        PlanNamespaces | None,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "has(self.names) || has(self.selector)",
                    "message": "spec.plans: allowedNamespaces has names, a selector, or both",
                }
            )
        ),
    ] = None
    """Namespaces whose GatewayTenants may take the plan, of those that spec.allowedTenants lets attach.
    Absent: every one of them. It does not concern spec.tenants."""
    per_namespace: Annotated[
        PlanShare | None,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "has(self.tenants) || (has(self.limits) && ("
                    + " || ".join(f"has(self.limits.{name})" for name in LIMITS)
                    + "))",
                    "message": "spec.plans: perNamespace has tenants, limits that are not empty, or both",
                }
            )
        ),
    ] = None
    """What the GatewayTenants of one namespace may have of the plan. Absent: as many as the namespace makes
    may take it, each with all of its limits."""

    @property
    def shared_limits(self) -> Quota | None:
        """What the tenants of one namespace may use together; None where each has its own limits alone."""
        return self.per_namespace.limits if self.per_namespace else None


#: What a plan says to the operator alone.
PLAN_ATTACHMENT = frozenset({"allowedNamespaces", "perNamespace"})


class Tenant(Terms):
    """Who is authenticated and audited."""

    name: ResourceName
    """Name of the tenant, as it stands in the ledger and in the claim of a token."""
    api_keys: ApiKeys | None = None
    """The tenant's API keys. It may be absent when spec.jwt is set: the tenant then has tokens only. An empty
    list locks out whoever has no token."""
    plan: ResourceName | None = None
    """What the tenant may use and how much: a name from spec.plans, in the place of its own models,
    endpoints, hostedTools, guardedTools, deniedBetas, limits, keyLimits, modelBudgets, waitSeconds, policy,
    policies and payloads."""
    placement: Annotated[int | None, Field(ge=0, le=63)] = None
    """Number of the worker that serves the tenant, for tenants whose load would unbalance the others'. It
    counts while spec.replicas is greater than it. Absent: a hash of the name decides."""


TenantOfTheGateway = Annotated[
    Tenant,
    Field(
        json_schema_extra=rules(
            {
                "rule": "!has(self.plan) || !(" + " || ".join(f"has(self.{name})" for name in TERMS) + ")",
                "message": "spec.tenants: a tenant has a plan, or models, endpoints, hostedTools,"
                " guardedTools, deniedBetas, limits, keyLimits, modelBudgets, waitSeconds, policy, policies"
                " and payloads of its own",
            }
        )
    ),
]


class NamespacesFrom(StrEnum):
    """Which namespaces may attach tenants."""

    SAME = "Same"
    ALL = "All"
    SELECTOR = "Selector"


class AllowedNamespaces(Section):
    """Namespaces whose GatewayTenants may attach."""

    from_: Annotated[NamespacesFrom, Field(alias="from")] = NamespacesFrom.SAME
    """Same: the gateway's own. All: every one that the operator serves. Selector: those with the labels of
    `selector`, which only an operator that serves the whole cluster may read."""
    selector: LabelSelector | None = None
    """Labels of namespaces."""


class AllowedTenants(Section):
    """Which GatewayTenants may attach, as in the Gateway API's allowedRoutes."""

    namespaces: Annotated[
        AllowedNamespaces,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "(self.from == 'Selector') == has(self.selector)",
                    "message": (
                        "spec.allowedTenants.namespaces: set selector if, and only if, from is Selector"
                    ),
                }
            )
        ),
    ] = AllowedNamespaces()
    """By their namespaces."""


class Issuer(proofgate_schema.jwt.Issuer):
    """Who signs tokens that are believed, and where its keys are."""

    jwks_url: Annotated[KeySetURL, Field(alias="jwksURL")]


class Jwt(Section):
    """JSON Web Tokens in the place of API keys."""

    issuers: Annotated[
        tuple[Issuer, ...], Field(min_length=1, max_length=8, json_schema_extra=keyed_by("issuer"))
    ]
    """Who signs tokens that are believed."""
