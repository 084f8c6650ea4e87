"""The section `loadBalancer`: HAProxy, its Service and who may connect."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from proofgate_operator.api.fields import (
    Cidr,
    Image,
    LabelSelector,
    Quantity,
    SecretRef,
    Section,
    cel_rules,
)
from proofgate_operator.api.pod_template import PodTemplate

AnnotationValue = Annotated[str, Field(max_length=4096)]


class LoadBalancerService(Section):
    """The Service through which clients reach the gateway."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """Type of the Service."""
    annotations: Annotated[dict[str, AnnotationValue] | None, Field(max_length=32)] = None
    """Annotations of the Service, for the controller that creates its load balancer."""
    load_balancer_class: Annotated[str | None, Field(min_length=1, max_length=253)] = None
    """Class of the controller that creates the load balancer. Absent: the cluster's default. Immutable once
    set."""
    load_balancer_source_ranges: Annotated[tuple[Cidr, ...] | None, Field(min_length=1, max_length=64)] = None
    """Address ranges from which the load balancer accepts clients. Absent: any."""
    external_traffic_policy: Literal["Cluster", "Local"] | None = None
    """Local: HAProxy sees the addresses of clients, which `connectionsPerSource` and the access log need;
    only nodes with an HAProxy pod receive traffic. Cluster: HAProxy can see the addresses of nodes instead.
    Absent: Cluster."""
    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] | None = None
    """Whether the Service has IPv4 addresses, IPv6 addresses or both. Absent: SingleStack."""
    port: Annotated[int | None, Field(ge=1, le=65535)] = None
    """Port of the Service. Absent: 443 with spec.loadBalancer.tls, otherwise 80."""


class Affinity(StrEnum):
    """Whether a tenant is always served by the same worker."""

    PREFERRED = "Preferred"
    REQUIRED = "Required"
    NONE = "None"


class AccessLog(StrEnum):
    """The connections that HAProxy logs."""

    ERRORS = "Errors"
    ALL = "All"


class IpBlock(Section):
    """A range of addresses."""

    cidr: Cidr
    """The range, for example 10.0.0.0/8."""
    except_: Annotated[tuple[Cidr, ...] | None, Field(alias="except", min_length=1, max_length=16)] = None
    """Ranges within cidr that are excluded."""


class Peer(Section):
    """A peer that may connect, as in a NetworkPolicy: pods, namespaces, pods in namespaces, or addresses."""

    namespace_selector: LabelSelector | None = None
    """Namespaces, by their labels. If absent and `podSelector` is set, the gateway's own namespace."""
    pod_selector: LabelSelector | None = None
    """Pods, by their labels. If absent and `namespaceSelector` is set, all pods."""
    ip_block: IpBlock | None = None
    """Addresses outside the cluster. This field cannot be combined with the selectors."""


class LoadBalancerTls(Section):
    """TLS between clients and HAProxy, 1.2 or later."""

    certificate_secret_ref: SecretRef
    """Secret of type kubernetes.io/tls in the gateway's namespace, for example of a cert-manager Certificate.
    A renewed certificate is used for new connections within seconds, and no connection is closed. A
    certificate that does not match its key is refused, and the previous one stays in use."""


def peer_rule(field: str) -> dict[str, Any]:
    """Return the CEL rule for one item of the list of peers at `field`."""
    return {
        "rule": "has(self.ipBlock) ? !has(self.podSelector) && !has(self.namespaceSelector)"
        " : has(self.podSelector) || has(self.namespaceSelector)",
        "message": f"{field}: an item must have either an ipBlock or selectors of pods or namespaces",
    }


AllowedPeer = Annotated[Peer, Field(json_schema_extra=cel_rules(peer_rule("spec.loadBalancer.allowFrom")))]

InternalPeer = Annotated[Peer, Field(json_schema_extra=cel_rules(peer_rule("spec.loadBalancer.insideFrom")))]


CpuQuantity = Annotated[str, Field(max_length=16, pattern=r"^([0-9]+(\.[0-9]{1,3})?|[0-9]+m)$")]


class ResourceList(Section):
    """CPU and memory."""

    cpu: CpuQuantity | None = None
    """CPU cores, for example 500m or 2."""
    memory: Quantity | None = None
    """Bytes, for example 256Mi."""


class HAProxyResources(Section):
    """Resources of the HAProxy container. Absent fields have the operator's defaults."""

    requests: ResourceList | None = None
    """Resources that are reserved for HAProxy. Absent: 50m of CPU, 64Mi of memory."""
    limits: ResourceList | None = None
    """Maximum resources that HAProxy may use. Absent: no CPU limit, and 128 MiB of memory plus 100 KiB (with
    internalTLS 140 KiB) for each connection that HAProxy accepts. A limits.headBytes above the default
    increases this memory."""


class LoadBalancer(Section):
    """HAProxy in front of the workers. It routes each tenant to one worker."""

    replicas: Annotated[int, Field(ge=1, le=16)] = 2
    """Number of HAProxy pods."""
    image: Image | None = None
    """Image of HAProxy, 2.6 or later. Absent: the image with which the operator was installed."""
    service: LoadBalancerService = LoadBalancerService()
    """The Service that clients use."""
    tls: LoadBalancerTls | None = None
    """TLS from clients ends at HAProxy. Absent: clients use plain HTTP, or TLS ends before HAProxy."""
    affinity: Affinity = Affinity.PREFERRED
    """Whether a tenant is always served by the same worker. Preferred: another worker serves the tenant while
    the tenant's own worker is unavailable. Usage on another worker counts with a delay of about two seconds.
    Required: another worker serves the tenant only while the tenant's own worker is replaced or shuts down
    gracefully. If the tenant's own worker crashes, the tenant's new connections get 503 with Retry-After until
    that worker is back, so that limits stay exact. None: any worker serves any tenant, and one connection can
    serve several tenants, as needed behind an ingress or mesh that pools connections. Usage on other workers
    then counts with a delay of about two seconds. With `ledger.volume.mode: PerWorker` such usage does not
    count at all: each worker grants every limit in full."""
    accept_proxy_protocol: bool = False
    """True: a load balancer in front sends a PROXY header (version 1 or 2) with clients' addresses.
    Connections without the header are refused. Set `allowFrom` to the load balancer's addresses, so that
    nobody else can connect. Clients inside the cluster send no PROXY header. They use a separate Service,
    `<gateway>-inside`, which is in `status.endpoint`."""
    allow_from: Annotated[tuple[AllowedPeer, ...] | None, Field(min_length=1, max_length=32)] = None
    """Peers that the network policy allows to send traffic to HAProxy. Absent: any."""
    inside_from: Annotated[tuple[InternalPeer, ...] | None, Field(min_length=1, max_length=32)] = None
    """Peers that may connect to the Service `<gateway>-inside`, in addition to the peers in `allowFrom`. This
    field needs `acceptProxyProtocol` and `allowFrom`. Absent: only the peers in `allowFrom`."""
    termination_grace_period_seconds: Annotated[int, Field(ge=60, le=7200)] = 600
    """Maximum seconds until a stopping HAProxy pod ends. Connections can finish until 30 seconds before this
    time; then the remaining connections are closed. A drain of the pod's node takes at most this long."""
    access_log: AccessLog = AccessLog.ERRORS
    """Connections that HAProxy logs when they end, as JSON lines on standard output. Errors: connections that
    ended abnormally. All: every connection."""
    connections_per_source: Annotated[int | None, Field(ge=1, le=1_000_000)] = None
    """Maximum connections that a client address may open per second. Further connections are closed without a
    response. Clients behind a proxy or NAT share an address. Absent: unlimited."""
    pod_template: PodTemplate | None = None
    """Additions to HAProxy's pods."""
    resources: Annotated[
        HAProxyResources | None,
        Field(
            json_schema_extra=cel_rules(
                *(
                    {
                        "rule": f"!has(self.requests) || !has(self.requests.{name}) ||"
                        f" !has(self.limits) || !has(self.limits.{name}) ||"
                        f" quantity(self.requests.{name}).compareTo(quantity(self.limits.{name})) <= 0",
                        "message": f"spec.loadBalancer.resources: requests.{name} must not be more than "
                        f"limits.{name}",
                    }
                    for name in ("cpu", "memory")
                )
            )
        ),
    ] = None
    """Resources of the container `haproxy` in each HAProxy pod. A change replaces the pods. Absent: the
    operator's defaults."""
