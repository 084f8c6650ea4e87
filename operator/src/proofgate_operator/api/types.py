"""The `GovernanceGateway` spec as frozen models.

Workers take on a change of providers, models, tenants, jwt, policy, cors and timeouts while they run. They
are replaced one by one for a change of `worker`, of `ledger`, or of the Secret entries that are mounted.

The models are the one source of the schema: `api/crd.py` turns them into the CRD, so a default, a bound or a
rule stands here once. Whatever the schema or its CEL rules refuse never reaches the operator; what needs a
look at other objects (a Secret that is missing) is reported by a condition.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from proofgate_operator.api.access import AllowedTenants, Cors, Jwt, Plan, TenantOfTheGateway
from proofgate_operator.api.fields import (
    AUTHORITY,
    SECRET_KEY,
    Cores,
    Image,
    LabelSelector,
    ModelName,
    Quantity,
    ResourceName,
    SecretKeyRef,
    SecretRef,
    Section,
    keyed_by,
    rules,
)
from proofgate_operator.api.monitoring import Monitoring
from proofgate_operator.api.pod_template import PodTemplate
from proofgate_operator.api.policy import Policy
from proofgate_operator.api.volume import LedgerVolume, Volume

MAX_REPLICAS = 64
#: Leaves room for `-worker-63` in a pod's name and for the revision hash in its labels (63 characters).
MAX_NAME_LENGTH = 40

#: On a gateway: the value of spec.replicas that a scale-down may reach although it is not safe.
FORCE_SCALE_DOWN_ANNOTATION = "proofgate.dev/force-scale-down"

#: The path is printable ASCII without a query or fragment: a request's own path is appended.
#: A schema-less URL. It is a line of every checkpoint and names its signature: no space and no `+` (C2SP
#: signed-note).
_LEDGER_ORIGIN = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)*$"
_HTTP_URL = rf'^https?://{AUTHORITY}(/[!-"$->@-~]*)?$'


class Durability(StrEnum):
    """What "recorded" means before a byte leaves."""

    WRITTEN = "Written"
    SYNCED = "Synced"


#: Bytes that a worker takes besides the bodies and answers that it holds: docs/operations.md, "Memory".
MEMORY_OTHERWISE = 320 << 20
#: Bytes of memory without which a worker could not hold its largest bodies.
MEMORY_LEAST = 384 << 20
MEMORY_FAULT = (
    "spec.worker.memory must be at least 384Mi: a worker takes 320Mi besides the bodies and answers that it"
    " holds, and needs 64Mi for those"
)


class Worker(Section):
    """Size of one worker: one gateway process on one core."""

    cpu: Annotated[
        Cores,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "type(self) == int ? self >= 1 && self <= 64 :"
                    " self.matches('^([1-9]|[1-5][0-9]|6[0-4]|[1-9][0-9]{2,3}m)$')",
                    "message": "spec.worker.cpu must be a whole number of cores from 1 to 64, or thousandths"
                    " of a core from 100m to 9999m",
                }
            )
        ),
    ] = "1"
    """Cores of a worker; request and limit are equal. One core is what a worker can use; two are for nodes
    whose CPU manager hands out whole physical cores (full-pcpus-only). A fraction such as 500m works, without
    a core of its own: CPUPinned says so."""
    memory: Annotated[
        Quantity,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "quantity(self).compareTo(quantity('384Mi')) >= 0",
                    "message": MEMORY_FAULT,
                }
            )
        ),
    ] = "512Mi"
    """Memory of a worker, at least 384Mi; request and limit are equal. What it has beyond 320Mi is for the
    bodies and answers that it holds."""
    image: Image | None = None
    """Image of the worker. Absent: the one the operator was installed with."""
    termination_grace_period_seconds: Annotated[int, Field(ge=5, le=3600)] = 60
    """Seconds from SIGTERM to SIGKILL; a worker drains and seals its log in that time."""
    pod_template: PodTemplate | None = None
    """Additions to the workers' pods."""


class Provider(Section):
    """An upstream that answers model requests."""

    name: ResourceName
    """Name that models refer to."""
    type: Literal["OpenAI"]
    """Protocol of the upstream."""
    base_url: Annotated[str, Field(alias="baseURL", max_length=512, pattern=_HTTP_URL)]
    """Where the API begins, for example https://api.openai.com/v1. No user name, query or fragment."""
    api_key_secret_ref: SecretKeyRef | None = None
    """The upstream's API key: one line of printable ASCII without spaces. Mounted into the workers, never
    copied; another key in the entry is used within seconds, another entry rolls the workers. Absent: the
    upstream wants none."""
    stream_usage: Literal["Ask", "Leave"] = "Ask"
    """Whether a stream is asked for its usage when the client does not ask. Leave is for an upstream that
    refuses stream_options."""


class ModelRoute(Section):
    """A model that clients may name."""

    name: ModelName
    """Name in the client's request."""
    provider: ResourceName
    """The provider that serves it: a name from spec.providers."""
    upstream_model: ModelName | None = None
    """Name the provider knows it by. Absent: the same name."""
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 4096
    """What a request that sets no maximum reserves of a tenant's token limits for its answer."""


class Rotation(Section):
    """When a worker's log ends and its next one begins, while it serves. No request notices."""

    size: Annotated[
        Quantity,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "quantity(self).compareTo(quantity('1Mi')) >= 0"
                    " && quantity(self).compareTo(quantity('1Ti')) <= 0",
                    "message": "spec.ledger.rotation.size must be from 1Mi to 1Ti",
                }
            )
        ),
    ] = "1Gi"
    """Of the records in a log, at most: the grain in which evidence can be moved away."""
    age_seconds: Annotated[int, Field(ge=60, le=31_622_400)] = 86_400
    """How long a log lasts at most, in seconds: a minute to 366 days."""


class SigningKeyRef(SecretKeyRef):
    """The Secret that holds a signing key."""

    key: Annotated[str, Field(min_length=1, max_length=253, pattern=SECRET_KEY)] = "signing-key"
    """Entry of the Secret."""


class Ledger(Section):
    """The record of every exchange."""

    durability: Durability = Durability.WRITTEN
    """Written: in the page cache before a byte leaves; survives kill -9. Synced: on disk; survives power
    loss."""
    checkpoint_interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 1
    """Seconds between signed checkpoints while records arrive."""
    rotation: Rotation = Rotation()
    """When a worker's log ends and its next one begins. A change rolls the workers."""
    volume: LedgerVolume = Volume()
    """Where the ledger is kept."""
    origin: Annotated[str | None, Field(min_length=1, max_length=128, pattern=_LEDGER_ORIGIN)] = None
    """Name of the ledger, with which every log's origin begins: a schema-less URL of your own, such as
    ledger.example.com/prod/llm, unlike that of every other ledger. The signing key has to bear it. Absent:
    `proofgate.dev/<namespace>/<gateway>`. Immutable."""
    signing_key_secret_ref: SigningKeyRef | None = None
    """Entry of a Secret with the Ed25519 key that signs checkpoints, as `proofgate keygen` writes it. Once
    set, it is immutable. Absent: the operator makes one, once, as `<gateway>-ledger`. It stays as long as the
    evidence does: with `retainPolicy: Retain`, or a claim that you brought, it outlives the gateway. One that
    is lost is not made anew (SigningKeyLost)."""


#: An address range, of IPv4 or IPv6; the API server parses it for good.
Cidr = Annotated[str, Field(max_length=49, pattern=r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$")]
AnnotationValue = Annotated[str, Field(max_length=4096)]


class LoadBalancerService(Section):
    """How the gateway is reached."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """Type of the Service."""
    annotations: Annotated[dict[str, AnnotationValue] | None, Field(max_length=32)] = None
    """Annotations of the Service, for the controller that makes its load balancer."""
    load_balancer_class: Annotated[str | None, Field(min_length=1, max_length=253)] = None
    """Which controller makes its load balancer. Absent: the cluster's own. It is fixed once it is set."""
    load_balancer_source_ranges: Annotated[tuple[Cidr, ...] | None, Field(min_length=1, max_length=64)] = None
    """Address ranges that the load balancer lets in. Absent: any."""
    external_traffic_policy: Literal["Cluster", "Local"] | None = None
    """Local: HAProxy sees the clients' addresses rather than nodes', for `connectionsPerSource` and the
    access log; only nodes with an HAProxy pod take traffic. Absent: Cluster."""
    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] | None = None
    """Whether the Service has addresses of IPv4 and IPv6. Absent: SingleStack."""
    port: Annotated[int | None, Field(ge=1, le=65535)] = None
    """Port of the Service. Absent: 443 with spec.loadBalancer.tls, 80 without."""


class Affinity(StrEnum):
    """Whether a tenant has a worker of its own, and who serves it while that is away."""

    PREFERRED = "Preferred"
    REQUIRED = "Required"
    NONE = "None"


class AccessLog(StrEnum):
    """Which connections HAProxy logs."""

    ERRORS = "Errors"
    ALL = "All"


class IpBlock(Section):
    """A range of addresses."""

    cidr: Cidr
    """The range, for example 10.0.0.0/8."""
    except_: Annotated[tuple[Cidr, ...] | None, Field(alias="except", min_length=1, max_length=16)] = None
    """Ranges within it that do not count."""


class Peer(Section):
    """Who may connect, as in a NetworkPolicy: pods, namespaces, pods in namespaces, or addresses."""

    namespace_selector: LabelSelector | None = None
    """Namespaces, by their labels. Absent, with `podSelector`: the gateway's own."""
    pod_selector: LabelSelector | None = None
    """Pods, by their labels. Absent, with `namespaceSelector`: all of them."""
    ip_block: IpBlock | None = None
    """Addresses outside of the cluster; it stands alone."""


class NetworkPolicies(StrEnum):
    """Who restricts what may reach the pods."""

    MANAGED = "Managed"
    NONE = "None"


class LoadBalancerTls(Section):
    """TLS between clients and HAProxy, 1.2 or later."""

    certificate_secret_ref: SecretRef
    """Secret of type kubernetes.io/tls in the gateway's namespace, for example that of a cert-manager
    Certificate. A renewed certificate is shown to new connections within seconds, and no connection is
    closed. One that does not fit its key is refused, and the one before stays."""


AllowedPeer = Annotated[
    Peer,
    Field(
        json_schema_extra=rules(
            {
                "rule": "has(self.ipBlock) ? !has(self.podSelector) && !has(self.namespaceSelector)"
                " : has(self.podSelector) || has(self.namespaceSelector)",
                "message": "spec.loadBalancer.allowFrom: an item is an ipBlock alone, or selectors of pods or"
                " namespaces",
            }
        )
    ),
]


class LoadBalancer(Section):
    """HAProxy in front of the workers; it keeps each tenant on one worker."""

    replicas: Annotated[int, Field(ge=1, le=16)] = 2
    """HAProxy pods."""
    image: Image | None = None
    """Image of HAProxy, 2.6 or later. Absent: the one the operator was installed with."""
    service: LoadBalancerService = LoadBalancerService()
    """The Service that clients use."""
    tls: LoadBalancerTls | None = None
    """TLS ends at HAProxy. Absent: clients speak plain HTTP, or TLS ends before HAProxy."""
    affinity: Affinity = Affinity.PREFERRED
    """Preferred: while a tenant's worker is away, another one serves it, and what was used there counts about
    two seconds late. Required: only while its worker is replaced or leaves on purpose; when it dies, new
    connections of the tenant get 503 with Retry-After until it is back, so that limits stay exact. None: any
    worker serves any tenant, also several on one connection, as behind an ingress or a mesh that pools
    connections; what was used on another worker counts about two seconds late, and with
    `ledger.volume.mode: PerWorker` not at all, so that each worker grants the whole of every limit."""
    accept_proxy_protocol: bool = False
    """True: clients come through a load balancer that writes a PROXY header (version 1 or 2), which tells
    their addresses. Whoever else connects is not served, so say in `allowFrom` who may."""
    allow_from: Annotated[tuple[AllowedPeer, ...] | None, Field(min_length=1, max_length=32)] = None
    """Who may send traffic to HAProxy, in a network policy. Absent: anyone."""
    termination_grace_period_seconds: Annotated[int, Field(ge=60, le=7200)] = 600
    """Seconds that a stopping HAProxy pod has for the connections that it holds: the longest that the drain
    of its node takes. 30 seconds before its end, what is left is cut."""
    access_log: AccessLog = AccessLog.ERRORS
    """Connections that HAProxy logs when they end, as one line of JSON each, on its standard output. Errors:
    those that ended otherwise than they should. All: every one."""
    connections_per_source: Annotated[int | None, Field(ge=1, le=1_000_000)] = None
    """Connections that one client address may open in a second; more are closed without an answer. Behind a
    proxy or a NAT, many clients are one address. Absent: as many as it likes."""
    pod_template: PodTemplate | None = None
    """Additions to HAProxy's pods."""


class Timeouts(Section):
    """Time limits, in seconds."""

    upstream_connect_seconds: Annotated[int, Field(ge=1, le=300)] = 5
    """To connect to a provider."""
    upstream_response_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Longest silence of a provider, before the first byte or between two."""
    answer_seconds: Annotated[int, Field(ge=1, le=86_400)] = 3600
    """From a request's head to the end of its answer, however steadily that comes."""
    connection_age_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300
    """Age at which a client's connection ends with its next answer, up to a tenth more or less: its client
    comes back where its tenant is served by then, and an HAProxy that is replaced gets rid of its
    connections."""
    drain_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """Time that open exchanges get to finish when a worker stops."""


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
        tuple[Provider, ...], Field(min_length=1, max_length=16, json_schema_extra=keyed_by("name"))
    ]
    """Upstreams."""
    models: Annotated[
        tuple[ModelRoute, ...], Field(min_length=1, max_length=64, json_schema_extra=keyed_by("name"))
    ]
    """Models that clients may name."""
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
    cors: Annotated[
        Cors | None,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "self.allowedOrigins.size() == 1 ||"
                    " !self.allowedOrigins.exists(origin, origin == '*')",
                    "message": "spec.cors.allowedOrigins: '*' allows every origin, so it stands alone",
                },
                {
                    "rule": "!self.allowedOrigins.exists(origin,"
                    " origin.matches('^(http:.*:80|https:.*:443)$'))",
                    "message": "spec.cors.allowedOrigins: browsers leave a default port out (RFC 6454)",
                },
            )
        ),
    ] = None
    """Which web pages may call the gateway from a browser. Absent: none."""
    ledger: Ledger = Ledger()
    """The record of every exchange."""
    load_balancer: LoadBalancer = LoadBalancer()
    """HAProxy in front of the workers."""
    timeouts: Timeouts = Timeouts()
    """Time limits."""
    rollout: Rollout = Rollout()
    """How workers are replaced."""
    network_policies: NetworkPolicies = NetworkPolicies.MANAGED
    """Managed: the operator lets only HAProxy reach the workers, and only those in `loadBalancer.allowFrom`
    reach HAProxy, where the cluster's network enforces network policies. None: it makes none."""
    monitoring: Monitoring = Monitoring()
    """What Prometheus is told."""
    paused: bool = False
    """True: the operator reports status and changes nothing."""


#: Rules over several fields of the spec. The API server bounds what a rule may cost, estimated from the
#: bounds above when the CRD is written and counted when an object is: the largest spec allowed must stay
#: below both.
SPEC_RULES: list[dict[str, Any]] = [
    {
        "rule": "self.models.all(m, self.providers.exists(p, p.name == m.provider))",
        "fieldPath": ".models",
        "message": "spec.models: the provider of every model must be in spec.providers",
    },
    {
        # A list of one binds the names once; `in` costs a step per name, a comparison of strings many.
        "rule": "[self.models.map(m, m.name)].all(names,"
        " self.tenants.all(t, !has(t.models) || t.models.all(name, name in names)))",
        "fieldPath": ".tenants",
        "message": "spec.tenants: every model of a tenant must be in spec.models",
    },
    {
        "rule": "[self.models.map(m, m.name)].all(names,"
        " self.plans.all(p, !has(p.models) || p.models.all(name, name in names)))",
        "fieldPath": ".plans",
        "message": "spec.plans: every model of a plan must be in spec.models",
    },
    {
        "rule": "[self.plans.map(p, p.name)].all(names,"
        " self.tenants.all(t, !has(t.plan) || t.plan in names))",
        "fieldPath": ".tenants",
        "message": "spec.tenants: every tenant's plan must be in spec.plans",
    },
    {
        "rule": "self.tenants.size() > 0 || has(self.allowedTenants)",
        "fieldPath": ".tenants",
        "message": "spec.tenants: list a tenant, or let GatewayTenants attach with spec.allowedTenants",
    },
    {
        "rule": "has(self.jwt) || self.tenants.all(t, has(t.apiKeys))",
        "fieldPath": ".tenants",
        "message": "spec.tenants: every tenant needs apiKeys unless spec.jwt is set",
    },
    {
        "rule": "self.timeouts.connectionAgeSeconds * 11 <="
        " (self.loadBalancer.terminationGracePeriodSeconds - 30) * 10",
        "fieldPath": ".timeouts.connectionAgeSeconds",
        "message": "spec.timeouts.connectionAgeSeconds, and a tenth, must be at least 30 below"
        " spec.loadBalancer.terminationGracePeriodSeconds, or a replaced HAProxy cuts connections in use",
    },
    {
        "rule": "self.networkPolicies == 'Managed' || !has(self.loadBalancer.allowFrom)",
        "fieldPath": ".loadBalancer.allowFrom",
        "message": "spec.loadBalancer.allowFrom needs spec.networkPolicies: Managed",
    },
    {
        "rule": "has(self.ledger.origin) == has(oldSelf.ledger.origin) &&"
        " (!has(self.ledger.origin) || self.ledger.origin == oldSelf.ledger.origin)",
        "message": "spec.ledger.origin is immutable",
    },
    {
        "rule": "!has(oldSelf.ledger.signingKeySecretRef) || has(self.ledger.signingKeySecretRef) &&"
        " self.ledger.signingKeySecretRef == oldSelf.ledger.signingKeySecretRef",
        "message": "spec.ledger.signingKeySecretRef is immutable once it is set",
    },
    {
        # What a worker takes besides: 3 s until nobody routes to it, 10 s to cut what is left and to seal.
        "rule": "self.timeouts.drainSeconds + 13 <= self.worker.terminationGracePeriodSeconds",
        "fieldPath": ".timeouts.drainSeconds",
        "message": "spec.timeouts.drainSeconds must be at least 13 below"
        " spec.worker.terminationGracePeriodSeconds, or a worker is killed before it has sealed its log",
    },
]

#: Rules over the whole object.
ROOT_RULES: list[dict[str, Any]] = [
    {
        "rule": f"self.metadata.name.size() <= {MAX_NAME_LENGTH} &&"
        " self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "message": f"metadata.name must be at most {MAX_NAME_LENGTH} characters, lower-case letters, digits"
        " and dashes, beginning with a letter: Services and pods are named after it",
    },
]


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
            spec=GatewaySpec.model_validate(manifest["spec"]),
            force_scale_down=_count((metadata.get("annotations") or {}).get(FORCE_SCALE_DOWN_ANNOTATION)),
        )
