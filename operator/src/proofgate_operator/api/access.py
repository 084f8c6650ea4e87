"""Models of access: tenants, how their clients authenticate, and how much they may use."""

from enum import StrEnum
from typing import Annotated

import proofgate_schema.jwt
from proofgate_schema.terms import TERM_FIELDS, Quota, Terms
from proofgate_schema.urls import KeySetURL
from pydantic import Field

from proofgate_operator.api.fields import (
    LabelSelector,
    ResourceName,
    SecretKeyRef,
    Section,
    cel_rules,
    list_map_key,
)

_SHA256 = r"^[0-9a-f]{64}$"
#: An RFC 3339 time (section 5.6) with capital T and Z, in this century.
_TIME = (
    r"^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)

#: Limits tenants so that the digests of their keys and HAProxy's map of them fit into one Secret.
MAX_KEYS_PER_TENANT = 32

Time = Annotated[str, Field(max_length=40, pattern=_TIME, json_schema_extra={"format": "date-time"})]


#: The fields of a quota, with their names in manifests.
LIMIT_NAMES = tuple(field.alias for field in Quota.model_fields.values())


class ApiKey(Section):
    """One API key: an entry of a Secret, or only its digest if the key must not be in the cluster."""

    name: ResourceName
    """Name of the key, unique among the tenant's keys. Requests do not contain the name, but their records
    do."""
    secret_ref: SecretKeyRef | None = None
    """Entry of a Secret that contains the key in clear text: one line without a line end, at least 20
    characters that a bearer token may contain (RFC 6750). Only its digest is copied from the Secret."""
    sha256: Annotated[str | None, Field(min_length=64, max_length=64, pattern=_SHA256)] = None
    """SHA-256 of the key in lower-case hexadecimal, instead of secretRef. `proofgate keys hash` prints the
    digest."""
    not_after: Time | None = None
    """Time at which the key expires (RFC 3339, for example 2026-12-31T00:00:00Z). After this time, workers
    refuse the key with 401. Absent: the key never expires."""


ApiKeys = Annotated[
    tuple[
        Annotated[
            ApiKey,
            Field(
                json_schema_extra=cel_rules(
                    {
                        "rule": "has(self.secretRef) != has(self.sha256)",
                        "message": "apiKeys: a key must have either secretRef or sha256",
                    }
                )
            ),
        ],
        ...,
    ],
    Field(max_length=MAX_KEYS_PER_TENANT, json_schema_extra=list_map_key("name")),
]


class PlanNamespaces(Section):
    """Namespaces whose GatewayTenants may use a plan: the namespaces in `names`, and the namespaces that
    `selector` matches."""

    names: Annotated[tuple[ResourceName, ...] | None, Field(min_length=1, max_length=16)] = None
    """Names of namespaces, at most 16. For more, use selector."""
    selector: LabelSelector | None = None
    """Labels of namespaces. Only an operator that serves the whole cluster can read them."""


class PlanShare(Section):
    """Part of a plan that is available to all GatewayTenants of one namespace together."""

    tenants: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """Maximum number of GatewayTenants that may use the plan. The oldest GatewayTenants take precedence. The
    plan's limits apply to each of them separately. Absent: unlimited."""
    limits: Quota | None = None
    """Limits for all GatewayTenants of the namespace together, in addition to the plan's limits for each. The
    limits are exact while all connections of these tenants reach one worker. These tenants are assigned to
    the same worker, like a single tenant (see spec.loadBalancer.affinity). Usage of a tenant that was
    deleted, or that changed its plan, still counts."""


class Plan(Terms):
    """Limits and permissions that tenants share by name."""

    name: ResourceName
    """Name of the plan, to which tenants refer."""
    allowed_namespaces: Annotated[
        PlanNamespaces | None,
        Field(
            json_schema_extra=cel_rules(
                {
                    "rule": "has(self.names) || has(self.selector)",
                    "message": "spec.plans: allowedNamespaces must have names, a selector, or both",
                }
            )
        ),
    ] = None
    """Namespaces whose GatewayTenants may use the plan. Only namespaces that spec.allowedTenants allows
    can use it. Absent: all namespaces that spec.allowedTenants allows. This field does not apply to
    spec.tenants."""
    per_namespace: Annotated[
        PlanShare | None,
        Field(
            json_schema_extra=cel_rules(
                {
                    "rule": "has(self.tenants) || (has(self.limits) && ("
                    + " || ".join(f"has(self.limits.{name})" for name in LIMIT_NAMES)
                    + "))",
                    "message": "spec.plans: perNamespace must have tenants, limits that are not empty, or "
                    "both",
                }
            )
        ),
    ] = None
    """Maximum number of GatewayTenants of one namespace that may use the plan, and limits that they share.
    Absent: any number of GatewayTenants may use the plan, and the plan's limits apply to each of them
    separately."""

    @property
    def shared_limits(self) -> Quota | None:
        """The limits that the tenants of one namespace share; None if each tenant has only separate
        limits."""
        return self.per_namespace.limits if self.per_namespace else None


#: Fields of a plan that only the operator reads.
OPERATOR_ONLY_PLAN_FIELDS = frozenset({"allowedNamespaces", "perNamespace"})


class Tenant(Terms):
    """A tenant, for which requests are authenticated, limited and recorded."""

    name: ResourceName
    """Name of the tenant in the ledger and in the claim of a token."""
    api_keys: ApiKeys | None = None
    """API keys of the tenant. Absent (only with spec.jwt): the tenant's clients use tokens. Empty list: no
    API key is accepted."""
    plan: ResourceName | None = None
    """Name of the tenant's plan, from spec.plans. It replaces the tenant's own models, endpoints,
    hostedTools, guardedTools, deniedBetas, limits, keyLimits, modelBudgets, waitSeconds, policy, policies and
    payloads."""
    placement: Annotated[int | None, Field(ge=0, le=63)] = None
    """Number of the worker that serves the tenant. Use it for a tenant with so much load that the workers
    would be unbalanced. The number is used only if it is less than spec.replicas. Absent: a hash of the
    tenant's name selects the worker."""


GatewayListedTenant = Annotated[
    Tenant,
    Field(
        json_schema_extra=cel_rules(
            {
                "rule": "!has(self.plan) || !("
                + " || ".join(f"has(self.{name})" for name in TERM_FIELDS)
                + ")",
                "message": "spec.tenants: a tenant with a plan must not have models, endpoints, "
                "hostedTools, guardedTools, deniedBetas, limits, keyLimits, modelBudgets, waitSeconds, "
                "policy, policies or payloads",
            }
        )
    ),
]


class NamespacesFrom(StrEnum):
    """The namespaces whose tenants may attach."""

    SAME = "Same"
    ALL = "All"
    SELECTOR = "Selector"


class AllowedNamespaces(Section):
    """Namespaces whose GatewayTenants may attach."""

    from_: Annotated[NamespacesFrom, Field(alias="from")] = NamespacesFrom.SAME
    """Same: the gateway's own namespace. All: every namespace that the operator serves. Selector: namespaces
    with the labels in `selector`. Only an operator that serves the whole cluster can read these labels."""
    selector: LabelSelector | None = None
    """Labels of namespaces, if from is Selector."""


class AllowedTenants(Section):
    """GatewayTenants that may attach, as in the Gateway API's allowedRoutes."""

    namespaces: Annotated[
        AllowedNamespaces,
        Field(
            json_schema_extra=cel_rules(
                {
                    "rule": "(self.from == 'Selector') == has(self.selector)",
                    "message": (
                        "spec.allowedTenants.namespaces: selector is required if from is Selector, and not "
                        "allowed otherwise"
                    ),
                }
            )
        ),
    ] = AllowedNamespaces()
    """Namespaces of the GatewayTenants that may attach."""


class Issuer(proofgate_schema.jwt.Issuer):
    """An issuer whose tokens are accepted, and the location of its keys."""

    jwks_url: Annotated[KeySetURL, Field(alias="jwksURL")]


class Jwt(Section):
    """JSON Web Tokens instead of API keys."""

    issuers: Annotated[
        tuple[Issuer, ...], Field(min_length=1, max_length=8, json_schema_extra=list_map_key("issuer"))
    ]
    """Issuers. Tokens of these issuers are accepted."""
