"""The part of the spec that says how clients reach the workers: HAProxy, its Service and who may connect."""

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
    rules,
)
from proofgate_operator.api.pod_template import PodTemplate

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


class LoadBalancerTls(Section):
    """TLS between clients and HAProxy, 1.2 or later."""

    certificate_secret_ref: SecretRef
    """Secret of type kubernetes.io/tls in the gateway's namespace, for example that of a cert-manager
    Certificate. A renewed certificate is shown to new connections within seconds, and no connection is
    closed. One that does not fit its key is refused, and the one before stays."""


def peer_rule(field: str) -> dict[str, Any]:
    """Return the rule on one item of the list of peers at `field`."""
    return {
        "rule": "has(self.ipBlock) ? !has(self.podSelector) && !has(self.namespaceSelector)"
        " : has(self.podSelector) || has(self.namespaceSelector)",
        "message": f"{field}: an item has either an ipBlock or selectors of pods or namespaces",
    }


AllowedPeer = Annotated[Peer, Field(json_schema_extra=rules(peer_rule("spec.loadBalancer.allowFrom")))]

InsidePeer = Annotated[Peer, Field(json_schema_extra=rules(peer_rule("spec.loadBalancer.insideFrom")))]


CpuQuantity = Annotated[str, Field(max_length=16, pattern=r"^([0-9]+(\.[0-9]{1,3})?|[0-9]+m)$")]


class ResourceList(Section):
    """Amounts of what a node has."""

    cpu: CpuQuantity | None = None
    """Cores, for example 500m or 2."""
    memory: Quantity | None = None
    """Bytes, for example 256Mi."""


class HAProxyResources(Section):
    """What HAProxy asks of its node, as in a pod. What is absent is as the operator sets it."""

    requests: ResourceList | None = None
    """What is kept for it. Absent: 50m of CPU, 64Mi of memory."""
    limits: ResourceList | None = None
    """What it may use at most. Absent: no limit of CPU, and as much memory as the connections take that it
    lets in, at 100 KiB each."""


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
    their addresses. Whoever else connects there is not served, so say in `allowFrom` who may. Clients inside
    the cluster, who write none, have a Service of their own, `<gateway>-inside`, which is in
    `status.endpoint`."""
    allow_from: Annotated[tuple[AllowedPeer, ...] | None, Field(min_length=1, max_length=32)] = None
    """Who may send traffic to HAProxy, in a network policy. Absent: anyone."""
    inside_from: Annotated[tuple[InsidePeer, ...] | None, Field(min_length=1, max_length=32)] = None
    """With `acceptProxyProtocol` and `allowFrom`: who else may connect to `<gateway>-inside`. Absent: nobody
    but those in `allowFrom`."""
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
    resources: Annotated[
        HAProxyResources | None,
        Field(
            json_schema_extra=rules(
                *(
                    {
                        "rule": f"!has(self.requests) || !has(self.requests.{name}) ||"
                        f" !has(self.limits) || !has(self.limits.{name}) ||"
                        f" quantity(self.requests.{name}).compareTo(quantity(self.limits.{name})) <= 0",
                        "message": f"spec.loadBalancer.resources: requests.{name} is more than limits.{name}",
                    }
                    for name in ("cpu", "memory")
                )
            )
        ),
    ] = None
    """Of the container haproxy in each of its pods. A change replaces the pods. Absent: as the operator sets
    them."""
