"""Who may talk to the pods: clients to HAProxy, HAProxy to the workers, labelled monitoring to the
metrics."""

from typing import Any

from proofgate_operator.api.types import Gateway
from proofgate_operator.build import haproxy, statefulset
from proofgate_operator.build.config import ADMIN_PORT, TRAFFIC_PORT
from proofgate_operator.build.naming import MONITORING_LABEL, Manifest, child, names, selector_labels

_MONITORING = {"podSelector": {"matchLabels": {MONITORING_LABEL: "true"}}}


def _ports(*ports: int) -> list[Manifest]:
    return [{"port": port, "protocol": "TCP"} for port in ports]


def _policy(gateway: Gateway, name: str, component: str, ingress: list[dict[str, Any]]) -> Manifest:
    return {
        **child(gateway, "networking.k8s.io/v1", "NetworkPolicy", name, component),
        "spec": {
            "podSelector": {"matchLabels": selector_labels(gateway, component)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }


def worker_policy(gateway: Gateway) -> Manifest:
    """Traffic and health checks come from HAProxy only; a tenant cannot walk around the affinity."""
    balancer = {"podSelector": {"matchLabels": selector_labels(gateway, haproxy.COMPONENT)}}
    ingress: list[dict[str, Any]] = [
        {"from": [balancer], "ports": _ports(TRAFFIC_PORT, ADMIN_PORT)},
        {"from": [_MONITORING], "ports": _ports(ADMIN_PORT)},
    ]
    return _policy(gateway, names(gateway).worker, statefulset.COMPONENT, ingress)


def haproxy_policy(gateway: Gateway) -> Manifest:
    """Anyone may send traffic: whoever has no key gets 401. Metrics are for labelled pods."""
    ingress: list[dict[str, Any]] = [
        {"ports": _ports(haproxy.TRAFFIC_PORT)},
        {"from": [_MONITORING], "ports": _ports(haproxy.METRICS_PORT)},
    ]
    return _policy(gateway, names(gateway).haproxy, haproxy.COMPONENT, ingress)
