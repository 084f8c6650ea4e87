"""Models of the `GovernanceGateway` object and its spec.

Running workers apply changes of providers, models, egress, prices, tenants, jwt, policy, policies, cors,
telemetry, timeouts and limits. A change of `worker`, `ledger`, `analysis`, `limits.connections` or the
mounted Secret entries replaces them one by one.

These models, and the models of `proofgate_schema` that the gateway's file uses as well, are the single source
of the schema: `api/crd.py` turns them into the CRD, so each default, bound or rule is defined once. A
manifest that violates the schema or its CEL rules never reaches the operator. A condition reports faults that
depend on other objects, such as a missing Secret.
"""

from enum import StrEnum
from typing import Annotated, Any

from proofgate_schema.analysis import Analysis
from proofgate_schema.cors import Cors
from proofgate_schema.limits import Limits
from proofgate_schema.models import Model
from proofgate_schema.policy import Policy
from proofgate_schema.prices import Price
from proofgate_schema.timeouts import Timeouts
from pydantic import Field

from proofgate_operator.api.access import AllowedTenants, GatewayListedTenant, Jwt, Plan
from proofgate_operator.api.analysis import ANALYSIS_RULES
from proofgate_operator.api.auditor import Auditor
from proofgate_operator.api.cors import CORS_RULES
from proofgate_operator.api.external_policies import ExternalPolicyWithSource
from proofgate_operator.api.fields import LENIENT, Section, cel_rules, list_map_key
from proofgate_operator.api.internal_tls import (
    INTERNAL_TLS_RULES,
    PLAINTEXT,
    TLS_ONLY,
    InternalTls,
    InternalTlsMode,
    TlsTransition,
)
from proofgate_operator.api.keeping import Keeping
from proofgate_operator.api.ledger import Ledger
from proofgate_operator.api.load_balancer import LoadBalancer
from proofgate_operator.api.monitoring import Monitoring
from proofgate_operator.api.telemetry import TELEMETRY_RULES, Telemetry
from proofgate_operator.api.upstream import PROVIDER_RULES, Egress, Provider
from proofgate_operator.api.worker import Worker

MAX_REPLICAS = 64

#: Annotation of a gateway: the value of spec.replicas to which a scale-down is allowed although it is not
#: safe.
FORCE_SCALE_DOWN_ANNOTATION = "proofgate.dev/force-scale-down"


class NetworkPolicies(StrEnum):
    """Whether the operator creates network policies."""

    MANAGED = "Managed"
    NONE = "None"


class LogFormat(StrEnum):
    """The format of log lines."""

    JSON = "json"
    TEXT = "text"


class Rollout(Section):
    """Replacement of workers: one at a time, each after the previous one is ready again."""

    surge: bool = True
    """True: a gateway with one worker gets a second one while the first is replaced, so that requests are
    always served. It has no effect with more workers."""


class GatewaySpec(Section):
    """The desired state of a gateway."""

    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 2
    """Number of workers. Each worker uses one core. To change it: `kubectl scale ggw/<name> --replicas=8`."""
    worker: Worker = Worker()
    """Size and pods of the workers."""
    providers: Annotated[
        tuple[Annotated[Provider, Field(json_schema_extra=cel_rules(*PROVIDER_RULES))], ...],
        Field(min_length=1, max_length=16, json_schema_extra=list_map_key("name")),
    ]
    """Providers of models."""
    egress: Egress | None = None
    """Addresses to which workers may connect to reach providers. Absent: all addresses except link-local
    addresses, multicast addresses, and addresses of cloud metadata services."""
    models: Annotated[
        tuple[Model, ...], Field(min_length=1, max_length=64, json_schema_extra=list_map_key("name"))
    ]
    """Models that clients can request."""
    prices: Annotated[tuple[Price, ...], Field(max_length=64)] = ()
    """Prices of models, for costs in records and metrics, and for budgets. If several prices match, prices
    that name the provider take precedence, then exact names over prefixes, then later dates."""
    default_prices: bool = False
    """True: the gateway's built-in prices apply if `prices` contains no match. They apply only to providers
    at their vendors' own hosts. The built-in prices have dates, and are as old as the release."""
    plans: Annotated[tuple[Plan, ...], Field(max_length=32, json_schema_extra=list_map_key("name"))] = ()
    """Plans: limits and permissions that tenants share by name."""
    tenants: Annotated[
        tuple[GatewayListedTenant, ...], Field(max_length=128, json_schema_extra=list_map_key("name"))
    ] = ()
    """Tenants that may use the gateway."""
    allowed_tenants: AllowedTenants | None = None
    """GatewayTenants that may also use the gateway. They are separate objects in the namespaces of teams.
    Absent: none."""
    jwt: Jwt | None = None
    """JSON Web Tokens instead of API keys. HAProxy routes a connection by the tenant in its token, and the
    worker verifies the token. Absent: API keys only."""
    policy: Policy | None = None
    """The rules that inspect prompts and responses. Absent: no rules."""
    policies: Annotated[
        tuple[ExternalPolicyWithSource, ...], Field(max_length=16, json_schema_extra=list_map_key("name"))
    ] = ()
    """External policies, in Python or from HTTP services, for tenants and plans that name them."""
    cors: Annotated[Cors | None, Field(json_schema_extra=cel_rules(*CORS_RULES))] = None
    """Web pages that may call the gateway from a browser. Absent: no web page may call it."""
    ledger: Ledger = Ledger()
    """The record of every exchange."""
    auditor: Auditor | None = None
    """An auditor that verifies the ledger independently of the workers. Absent: no auditor runs. A change
    does not affect the workers."""
    keeping: Keeping | None = None
    """Retention periods of records, and holds that override them. Absent: nothing is removed or erased
    automatically, and existing holds stay active."""
    load_balancer: LoadBalancer = LoadBalancer()
    """HAProxy in front of the workers."""
    internal_tls: Annotated[
        InternalTls, Field(alias="internalTLS", json_schema_extra=cel_rules(*INTERNAL_TLS_RULES))
    ] = InternalTls(mode=InternalTlsMode.NONE)
    """TLS between HAProxy and the workers. Absent: the connections are not encrypted, as with mode None."""
    timeouts: Timeouts = Timeouts()
    """Time limits for clients and providers."""
    limits: Limits = Limits()
    """Limits on the bytes that clients may send, and on the number of clients of a worker."""
    rollout: Rollout = Rollout()
    """Replacement of workers."""
    network_policies: NetworkPolicies = NetworkPolicies.MANAGED
    """Managed: the operator creates network policies, which apply if the cluster's network enforces them:
    only HAProxy can reach the workers, and only peers in `loadBalancer.allowFrom` can reach HAProxy. None:
    the operator creates none."""
    monitoring: Monitoring = Monitoring()
    """Metrics and how Prometheus scrapes them."""
    telemetry: Annotated[Telemetry | None, Field(json_schema_extra=cel_rules(*TELEMETRY_RULES))] = None
    """The access log of the workers, and their telemetry export by OpenTelemetry. Absent: none."""
    log_format: LogFormat = LogFormat.TEXT
    """Log format of workers, auditor and HAProxy sidecar: text lines, or JSON lines with `time`, `level`,
    `logger`, `message` and `context`. A change replaces the pods."""
    analysis: Annotated[Analysis | None, Field(json_schema_extra=cel_rules(*ANALYSIS_RULES))] = None
    """Analysis of responses after their delivery to clients. Absent: none. A change replaces the workers."""
    paused: bool = False
    """True: the operator reports status and changes nothing."""


def _parse_count(text: object) -> int | None:
    """Return the number in an annotation; None if it is not a number."""
    found = str(text)
    return int(found) if found.isascii() and found.isdigit() and len(found) < 4 else None


class Gateway(Section):
    """One `GovernanceGateway` object: its identity and its spec."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: GatewaySpec
    #: The number of workers to which the gateway may be scaled down although it is not safe; None: no such
    #: permission.
    force_scale_down: int | None = None
    #: The current step of the transition to `spec.internalTLS`; None if it is complete.
    reached: TlsTransition | None = None

    @property
    def tls_transition(self) -> TlsTransition:
        """The current step of the connections between HAProxy and the workers."""
        off = self.spec.internal_tls.mode is InternalTlsMode.NONE
        return self.reached or (PLAINTEXT if off else TLS_ONLY)

    @property
    def enabled_auditor(self) -> Auditor | None:
        """The auditor that the gateway should have; None if it should have none."""
        wanted = self.spec.auditor
        return wanted if wanted is not None and wanted.enabled else None

    @property
    def ledger_name(self) -> str:
        """The ledger's name; the origin of every log starts with it."""
        return self.spec.ledger.origin or f"proofgate.dev/{self.namespace}/{self.name}"

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> "Gateway":
        """Parse an object of the API server."""
        metadata = manifest["metadata"]
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            generation=metadata.get("generation", 1),
            spec=GatewaySpec.model_validate(manifest["spec"], **LENIENT),
            force_scale_down=_parse_count(
                (metadata.get("annotations") or {}).get(FORCE_SCALE_DOWN_ANNOTATION)
            ),
        )
