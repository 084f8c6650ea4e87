"""The `GovernanceGateway` object and its spec as frozen models.

Workers take on a change of providers, models, egress, prices, tenants, jwt, policy, policies, cors,
telemetry, timeouts and limits while they run. They are replaced one by one for a change of `worker`, of
`ledger`, of `analysis`, of `limits.connections`, or of the Secret entries that are mounted.

The models, and those of `proofgate_schema` that the gateway's file has as well, are the one source of the
schema: `api/crd.py` turns them into the CRD, so a default, a bound or a rule stands once. Whatever the schema
or its CEL rules refuse never reaches the operator; what needs a look at other objects (a Secret that is
missing) is reported by a condition.
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

from proofgate_operator.api.access import AllowedTenants, Jwt, Plan, TenantOfTheGateway
from proofgate_operator.api.analysis import ANALYSIS_RULES
from proofgate_operator.api.auditor import Auditor
from proofgate_operator.api.cors import CORS_RULES
from proofgate_operator.api.external_policies import ExternalPolicyWithSource
from proofgate_operator.api.fields import LENIENT, Section, keyed_by, rules
from proofgate_operator.api.internal_tls import (
    CLEAR,
    INTERNAL_TLS_RULES,
    SEALED,
    Hop,
    InternalTls,
    InternalTlsMode,
)
from proofgate_operator.api.keeping import Keeping
from proofgate_operator.api.ledger import Ledger
from proofgate_operator.api.load_balancer import LoadBalancer
from proofgate_operator.api.monitoring import Monitoring
from proofgate_operator.api.telemetry import TELEMETRY_RULES, Telemetry
from proofgate_operator.api.upstream import PROVIDER_RULES, Egress, Provider
from proofgate_operator.api.worker import Worker

MAX_REPLICAS = 64

#: On a gateway: the value of spec.replicas that a scale-down may reach although it is not safe.
FORCE_SCALE_DOWN_ANNOTATION = "proofgate.dev/force-scale-down"


class NetworkPolicies(StrEnum):
    """Who restricts what may reach the pods."""

    MANAGED = "Managed"
    NONE = "None"


class LogFormat(StrEnum):
    """The form of the lines that processes log."""

    JSON = "json"
    TEXT = "text"


class Rollout(Section):
    """How workers are replaced: one by one, each only when the one before is ready again."""

    surge: bool = True
    """True: a gateway of one worker gets a second one while its own is replaced, so that somebody serves.
    Gateways of more workers never need it."""


class GatewaySpec(Section):
    """What a gateway shall be."""

    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 2
    """Workers, one per core: `kubectl scale ggw/<name> --replicas=8`."""
    worker: Worker = Worker()
    """Size of one worker."""
    providers: Annotated[
        tuple[Annotated[Provider, Field(json_schema_extra=rules(*PROVIDER_RULES))], ...],
        Field(min_length=1, max_length=16, json_schema_extra=keyed_by("name")),
    ]
    """Upstreams."""
    egress: Egress | None = None
    """Where workers may connect to reach them. Absent: everywhere but link-local addresses and others at
    which clouds keep a machine's metadata, and multicast."""
    models: Annotated[
        tuple[Model, ...], Field(min_length=1, max_length=64, json_schema_extra=keyed_by("name"))
    ]
    """Models that clients may name."""
    prices: Annotated[tuple[Price, ...], Field(max_length=64)] = ()
    """What models cost, for costs in records and metrics, and for budgets. Of those that fit, the ones that
    name the provider go before others, exact names before beginnings, later days before earlier ones."""
    default_prices: bool = False
    """True: where prices say nothing, those hold that come with the gateway, for providers at their vendors'
    own hosts. They are dated, and as old as the release."""
    plans: Annotated[tuple[Plan, ...], Field(max_length=32, json_schema_extra=keyed_by("name"))] = ()
    """What tenants may use and how much, by name."""
    tenants: Annotated[
        tuple[TenantOfTheGateway, ...], Field(max_length=128, json_schema_extra=keyed_by("name"))
    ] = ()
    """Who may use the gateway."""
    allowed_tenants: AllowedTenants | None = None
    """Which GatewayTenants, objects of their own in their teams' namespaces, may use the gateway as well.
    Absent: none."""
    jwt: Jwt | None = None
    """JSON Web Tokens in the place of API keys. HAProxy routes a connection by the tenant that its token
    names, and the worker verifies the token."""
    policy: Policy | None = None
    """The rules that look at prompts and answers. Absent: there are none."""
    policies: Annotated[
        tuple[ExternalPolicyWithSource, ...], Field(max_length=16, json_schema_extra=keyed_by("name"))
    ] = ()
    """Policies in Python, or of services elsewhere, for tenants and plans that name them."""
    cors: Annotated[Cors | None, Field(json_schema_extra=rules(*CORS_RULES))] = None
    """Which web pages may call the gateway from a browser. Absent: none."""
    ledger: Ledger = Ledger()
    """The record of every exchange."""
    auditor: Auditor | None = None
    """Who follows the ledger from outside. Absent: nobody. Workers do not notice it."""
    keeping: Keeping | None = None
    """How long records are kept, and what must stay whatever that says. Absent: nothing is removed or erased
    by itself, and holds stay active."""
    load_balancer: LoadBalancer = LoadBalancer()
    """HAProxy in front of the workers."""
    internal_tls: Annotated[
        InternalTls, Field(alias="internalTLS", json_schema_extra=rules(*INTERNAL_TLS_RULES))
    ] = InternalTls(mode=InternalTlsMode.NONE)
    """TLS between HAProxy and the workers. Absent: None."""
    timeouts: Timeouts = Timeouts()
    """Time limits."""
    limits: Limits = Limits()
    """How much clients may send."""
    rollout: Rollout = Rollout()
    """How workers are replaced."""
    network_policies: NetworkPolicies = NetworkPolicies.MANAGED
    """Managed: the operator lets only HAProxy reach the workers, and only those in `loadBalancer.allowFrom`
    reach HAProxy, where the cluster's network enforces network policies. None: it makes none."""
    monitoring: Monitoring = Monitoring()
    """What Prometheus is told."""
    telemetry: Annotated[Telemetry | None, Field(json_schema_extra=rules(*TELEMETRY_RULES))] = None
    """The access log of the workers, and what they export by OpenTelemetry. Absent: none of it."""
    log_format: LogFormat = LogFormat.TEXT
    """The log of workers, auditor and HAProxy's sidecar: lines of text, or of JSON with `time`, `level`,
    `logger`, `message` and `context`. A change replaces the pods."""
    analysis: Annotated[Analysis | None, Field(json_schema_extra=rules(*ANALYSIS_RULES))] = None
    """Analysis of answers after their clients were served. Absent: none. A change replaces the workers."""
    paused: bool = False
    """True: the operator reports status and changes nothing."""


def _count(text: object) -> int | None:
    """Return the number in an annotation; None if there is none."""
    found = str(text)
    return int(found) if found.isascii() and found.isdigit() and len(found) < 4 else None


class Gateway(Section):
    """One `GovernanceGateway` object: who it is and what it shall be."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: GatewaySpec
    #: The number of workers to which the gateway may be scaled down although that is not safe.
    force_scale_down: int | None = None
    #: How far the way to the workers has come to what `spec.internalTLS` says; None where it is there.
    reached: Hop | None = None

    @property
    def hop(self) -> Hop:
        """How HAProxy and the workers are to speak with each other now."""
        off = self.spec.internal_tls.mode is InternalTlsMode.NONE
        return self.reached or (CLEAR if off else SEALED)

    @property
    def auditor(self) -> Auditor | None:
        """The auditor that the gateway shall have; None for none."""
        wanted = self.spec.auditor
        return wanted if wanted is not None and wanted.enabled else None

    @property
    def ledger_name(self) -> str:
        """Name of the ledger; the origin of every log below it begins with it."""
        return self.spec.ledger.origin or f"proofgate.dev/{self.namespace}/{self.name}"

    @classmethod
    def read(cls, manifest: dict[str, Any]) -> "Gateway":
        """Read an object as the API server returns it."""
        metadata = manifest["metadata"]
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            generation=metadata.get("generation", 1),
            spec=GatewaySpec.model_validate(manifest["spec"], **LENIENT),
            force_scale_down=_count((metadata.get("annotations") or {}).get(FORCE_SCALE_DOWN_ANNOTATION)),
        )
