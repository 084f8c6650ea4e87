"""Network policies: clients may connect to HAProxy, HAProxy to the workers, and labelled monitoring pods to
the metrics."""

from collections.abc import Sequence
from typing import Any

from proofgate_operator.api.auditor import Auditor
from proofgate_operator.api.gateway import Gateway, NetworkPolicies
from proofgate_operator.build import (
    auditor,
    auditor_workers,
    haproxy,
    mirrors,
    oidc,
    retention,
    siem,
    statefulset,
)
from proofgate_operator.build.naming import (
    MONITORING_LABEL,
    OPERATOR,
    Defaults,
    Manifest,
    child_manifest,
    names,
    selector_labels,
)
from proofgate_operator.build.worker_config import ADMIN_PORT, TRAFFIC_PORT

#: Label that the API server sets on every namespace.
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
#: Ports of name servers, including those of OpenShift behind their Service.
_DNS_PORTS = (53, 5353)
_MONITORING = {"podSelector": {"matchLabels": {MONITORING_LABEL: "true"}}}


def _monitoring(gateway: Gateway) -> list[Manifest]:
    """Return the peers that may read metrics."""
    namespaces = gateway.spec.monitoring.from_namespaces
    return [
        _MONITORING,
        *({"namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: name}}} for name in namespaces),
    ]


def _ports(*ports: int) -> list[Manifest]:
    return [{"port": port, "protocol": "TCP"} for port in ports]


def _policy(gateway: Gateway, name: str, component: str, ingress: list[dict[str, Any]]) -> Manifest:
    return {
        **child_manifest(gateway, "networking.k8s.io/v1", "NetworkPolicy", name, component),
        "spec": {
            "podSelector": {"matchLabels": selector_labels(gateway, component)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }


def policies(
    gateway: Gateway, defaults: Defaults, witness_ports: Sequence[int] | None = ()
) -> list[Manifest]:
    """Return the network policies of the gateway.

    `witness_ports` are the ports of the auditor's witnesses; while they are unknown (None), the auditor's
    policy stays unchanged.
    """
    if gateway.spec.network_policies is NetworkPolicies.NONE:
        return []
    found = [worker_policy(gateway, defaults), haproxy_policy(gateway, defaults)]
    if gateway.spec.keeping is not None:
        found.append(retention_policy(gateway))
    wanted = gateway.enabled_auditor
    if wanted is None or witness_ports is None:
        return found
    return [*found, auditor_policy(gateway, wanted, defaults, witness_ports)]


def _operator(defaults: Defaults) -> list[Manifest]:
    """Return the operator's pods as peers; empty if it runs outside the cluster."""
    if not defaults.operator_namespace:
        return []
    return [
        {
            "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: defaults.operator_namespace}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": OPERATOR}},
        }
    ]


def worker_policy(gateway: Gateway, defaults: Defaults) -> Manifest:
    """Return the workers' policy: only HAProxy sends traffic and health checks, so no tenant can bypass the
    affinity.

    The operator uses the workers' admin port. In the mode PerWorker, the auditor reads the workers' volumes
    through that port.
    """
    balancer = _pods(gateway, haproxy.COMPONENT)
    ingress: list[dict[str, Any]] = [
        {"from": [balancer], "ports": _ports(TRAFFIC_PORT, ADMIN_PORT)},
        {"from": _monitoring(gateway), "ports": _ports(ADMIN_PORT)},
    ]
    if gateway.enabled_auditor and auditor_workers.workers_serve_volumes(gateway):
        ingress.append({"from": [_pods(gateway, auditor.COMPONENT)], "ports": _ports(ADMIN_PORT)})
    if operator := _operator(defaults):
        ingress.append({"from": operator, "ports": _ports(ADMIN_PORT)})
    return _policy(gateway, names(gateway).worker, statefulset.COMPONENT, ingress)


def haproxy_policy(gateway: Gateway, defaults: Defaults) -> Manifest:
    """Return HAProxy's policy: traffic comes from the peers in the spec, otherwise from any address (requests
    without a key get 401). Labelled pods read metrics. The operator asks the agent which workers HAProxy
    sends connections to, and whether requests are answered."""
    traffic: dict[str, Any] = {"ports": _ports(haproxy.TRAFFIC_PORT)}
    balancer = gateway.spec.load_balancer
    if balancer.allow_from is not None:
        traffic["from"] = [peer.to_document() for peer in balancer.allow_from]
    inside: list[dict[str, Any]] = []
    if balancer.accept_proxy_protocol:
        ports = _ports(haproxy.INTERNAL_PORT)
        others = [peer.to_document() for peer in balancer.inside_from or ()]
        # Peers that may connect through the load balancer may also connect directly; no other peer may send
        # the PROXY header.
        inside.append(
            {"ports": ports} | ({} if "from" not in traffic else {"from": traffic["from"] + others})
        )
    ingress: list[dict[str, Any]] = [
        traffic,
        *inside,
        {"from": _monitoring(gateway), "ports": _ports(haproxy.METRICS_PORT, haproxy.AGENT_PORT)},
    ]
    if operator := _operator(defaults):
        ingress.append({"from": operator, "ports": _ports(haproxy.AGENT_PORT)})
    return _policy(gateway, names(gateway).haproxy, haproxy.COMPONENT, ingress)


def auditor_policy(
    gateway: Gateway, wanted: Auditor, defaults: Defaults, witness_ports: Sequence[int] = ()
) -> Manifest:
    """Return the auditor's policy. Monitoring, the operator, the retention job and the peers in the spec may
    connect to its port. It connects to witnesses at these ports, its mirrors, its sinks, its OpenID provider,
    workers in the mode PerWorker, and name servers for these. If it has none of these, it connects to
    nothing, including name servers."""
    allowed = [peer.to_document() for peer in wanted.allow_from or ()]
    retention_jobs = [_pods(gateway, retention.COMPONENT)] if gateway.spec.keeping is not None else []
    readers = [*_monitoring(gateway), *_operator(defaults), *retention_jobs, *allowed]
    ingress = [{"from": readers, "ports": _ports(auditor.PORT)}]
    policy = _policy(gateway, names(gateway).auditor, auditor.COMPONENT, ingress)
    policy["spec"]["policyTypes"] = ["Ingress", "Egress"]
    asked = [
        *([_worker_egress(gateway)] if auditor_workers.workers_serve_volumes(gateway) else []),
        *([_witness_egress(wanted, witness_ports)] if witness_ports else []),
        *mirrors.egress(wanted.mirrors),
        *siem.egress(wanted.siem),
        *oidc.egress(wanted.enabled_index),
    ]
    if asked:
        policy["spec"]["egress"] = [_dns_egress(), *asked]
    return policy


def _pods(gateway: Gateway, component: str) -> Manifest:
    return {"podSelector": {"matchLabels": selector_labels(gateway, component)}}


def _dns_egress() -> Manifest:
    by_udp = [{"port": port, "protocol": "UDP"} for port in _DNS_PORTS]
    return {"ports": [*by_udp, *_ports(*_DNS_PORTS)]}


def _worker_egress(gateway: Gateway) -> Manifest:
    return {"to": [_pods(gateway, statefulset.COMPONENT)], "ports": _ports(ADMIN_PORT)}


def retention_policy(gateway: Gateway) -> Manifest:
    """Return the retention job's policy: nothing connects to it. It connects to the auditor, and to name
    servers for that; without an auditor, it connects to nothing."""
    policy = _policy(gateway, names(gateway).retention, retention.COMPONENT, [])
    # The API server removes an empty list, which has the same meaning.
    del policy["spec"]["ingress"]
    policy["spec"]["policyTypes"] = ["Ingress", "Egress"]
    if gateway.enabled_auditor is not None:
        asked = {"to": [_pods(gateway, auditor.COMPONENT)], "ports": _ports(auditor.PORT)}
        policy["spec"]["egress"] = [_dns_egress(), asked]
    return policy


def _witness_egress(wanted: Auditor, ports: Sequence[int]) -> Manifest:
    asked: Manifest = {"ports": _ports(*ports)}
    if wanted.witnesses and wanted.witnesses.egress:
        asked["to"] = [{"ipBlock": {"cidr": cidr}} for cidr in wanted.witnesses.egress.allow]
    return asked
