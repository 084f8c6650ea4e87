"""Services: one for clients, and one that gives every worker a name."""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import haproxy, statefulset
from proofgate_operator.build.naming import Manifest, child_manifest, names, selector_labels
from proofgate_operator.build.worker_config import ADMIN_PORT, TRAFFIC_PORT


def _scheme_and_port(gateway: Gateway) -> tuple[str, int]:
    balancer = gateway.spec.load_balancer
    scheme, port = ("https", 443) if balancer.tls else ("http", 80)
    return scheme, balancer.service.port or port


def gateway_service(gateway: Gateway) -> Manifest:
    """Return the Service in front of HAProxy."""
    scheme, port = _scheme_and_port(gateway)
    wanted = gateway.spec.load_balancer.service
    head = child_manifest(gateway, "v1", "Service", names(gateway).service, haproxy.COMPONENT)
    if wanted.annotations:
        head["metadata"]["annotations"] = wanted.annotations
    written = wanted.to_document()
    optional = ("loadBalancerClass", "externalTrafficPolicy", "loadBalancerSourceRanges", "ipFamilyPolicy")
    return {
        **head,
        "spec": {
            "type": wanted.type,
            **{name: written[name] for name in optional if name in written},
            "selector": selector_labels(gateway, haproxy.COMPONENT),
            "ports": [{"name": scheme, "port": port, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def internal_service(gateway: Gateway) -> Manifest:
    """Return the Service for clients inside the cluster, which send no PROXY header.

    If no client sends one, the Service leads to the port for all clients.
    """
    scheme, port = _scheme_and_port(gateway)
    target = "inside" if gateway.spec.load_balancer.accept_proxy_protocol else "http"
    return {
        **child_manifest(gateway, "v1", "Service", names(gateway).internal_service, haproxy.COMPONENT),
        "spec": {
            "type": "ClusterIP",
            "selector": selector_labels(gateway, haproxy.COMPONENT),
            "ports": [{"name": scheme, "port": port, "targetPort": target, "protocol": "TCP"}],
        },
    }


def workers_service(gateway: Gateway) -> Manifest:
    """Return the headless Service of the workers.

    It includes workers that are not ready: HAProxy checks readiness itself, and a draining worker must stay
    reachable for its open exchanges.
    """
    return {
        **child_manifest(gateway, "v1", "Service", names(gateway).workers, statefulset.COMPONENT),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_labels(gateway, statefulset.COMPONENT),
            "ports": [
                {"name": "traffic", "port": TRAFFIC_PORT, "targetPort": "traffic", "protocol": "TCP"},
                {"name": "admin", "port": ADMIN_PORT, "targetPort": "admin", "protocol": "TCP"},
            ],
        },
    }


def endpoint(gateway: Gateway, cluster_domain: str) -> str:
    """Return the base URL of the gateway's API inside the cluster, in the form that OpenAI clients need."""
    scheme, port = _scheme_and_port(gateway)
    suffix = "" if (scheme, port) in (("http", 80), ("https", 443)) else f":{port}"
    own = names(gateway)
    name = own.internal_service if gateway.spec.load_balancer.accept_proxy_protocol else own.service
    return f"{scheme}://{name}.{gateway.namespace}.svc.{cluster_domain}{suffix}/v1"
