"""Services: one that clients use, one that gives every worker a name."""

from proofgate_operator.api.types import Gateway
from proofgate_operator.build import haproxy, statefulset
from proofgate_operator.build.config import ADMIN_PORT, TRAFFIC_PORT
from proofgate_operator.build.naming import Manifest, child, names, selector_labels


def gateway_service(gateway: Gateway) -> Manifest:
    """Return the Service in front of HAProxy."""
    service = gateway.spec.load_balancer.service
    return {
        **child(gateway, "v1", "Service", names(gateway).service, haproxy.COMPONENT),
        "spec": {
            "type": service.type,
            "selector": selector_labels(gateway, haproxy.COMPONENT),
            "ports": [{"name": "http", "port": service.port, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def workers_service(gateway: Gateway) -> Manifest:
    """Return the headless Service of the workers.

    It names workers that are not ready too: HAProxy checks readiness itself, and a worker that drains must
    stay reachable for the exchanges it still has.
    """
    return {
        **child(gateway, "v1", "Service", names(gateway).workers, statefulset.COMPONENT),
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
    """Return the URL of the gateway inside the cluster."""
    port = gateway.spec.load_balancer.service.port
    suffix = "" if port == 80 else f":{port}"
    return f"http://{names(gateway).service}.{gateway.namespace}.svc.{cluster_domain}{suffix}"
