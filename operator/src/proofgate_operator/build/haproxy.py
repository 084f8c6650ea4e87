"""HAProxy in front of the workers: its Deployment and its configuration as a ConfigMap."""

import math

from proofgate_operator.api.types import MAX_REPLICAS, Gateway
from proofgate_operator.build import config, haproxy_config
from proofgate_operator.build.naming import (
    START_ANNOTATION,
    Defaults,
    Manifest,
    child,
    labels,
    names,
    selector_labels,
)
from proofgate_operator.build.pods import container_security, http_probe, pod_security, spread

COMPONENT = "load-balancer"
TRAFFIC_PORT = 8080
METRICS_PORT = 8404

_CONFIG_FILE = "haproxy.cfg"
_CONFIG_FOLDER = "/etc/proofgate-haproxy"
_TENANTS_FOLDER = "/etc/proofgate-tenants"
_MIN_SERVER_LINES = 8
#: How long a worker keeps an idle connection (its default `timeouts.clientIdleSeconds`).
_WORKER_IDLE_SECONDS = 75
#: A stream may last minutes: that long a stopping HAProxy waits for the ones it has.
_GRACE_SECONDS = 600


def server_lines(replicas: int) -> int:
    """Return how many server lines are declared for `replicas` workers: the next power of two, at least 8.

    A line without an address equals an absent one, so scaling below the bound leaves HAProxy's configuration,
    and thereby its pods, alone. More lines would only cost DNS questions for workers that are not there.
    """
    return min(MAX_REPLICAS, max(_MIN_SERVER_LINES, 1 << math.ceil(math.log2(replicas))))


def rendered_config(gateway: Gateway, defaults: Defaults) -> str:
    """Return haproxy.cfg for the gateway's workers."""
    own = names(gateway)
    timeouts = gateway.spec.timeouts
    suffix = f"{own.workers}.{gateway.namespace}.svc.{defaults.cluster_domain}"
    servers = tuple(
        haproxy_config.Server(
            ordinal,
            f"{own.worker}-{ordinal}.{suffix}",
            config.TRAFFIC_PORT,
            config.ADMIN_PORT,
        )
        for ordinal in range(server_lines(gateway.spec.replicas))
    )
    return haproxy_config.render(
        haproxy_config.Balancer(
            servers=servers,
            traffic_bind=f":{TRAFFIC_PORT}",
            metrics_bind=f":{METRICS_PORT}",
            tenant_map=f"{_TENANTS_FOLDER}/{config.TENANT_MAP}",
            # The worker gives up first, on a silent provider as on an idle client, and records that.
            silence_seconds=15
            + max(
                _WORKER_IDLE_SECONDS,
                timeouts.upstream_connect_seconds + timeouts.upstream_response_seconds,
            ),
            hard_stop_seconds=_GRACE_SECONDS - 30,
        )
    )


def config_map(gateway: Gateway, defaults: Defaults) -> Manifest:
    """Return the ConfigMap that holds haproxy.cfg."""
    head = child(gateway, "v1", "ConfigMap", names(gateway).haproxy, COMPONENT)
    return {**head, "data": {_CONFIG_FILE: rendered_config(gateway, defaults)}}


def _container(gateway: Gateway, defaults: Defaults) -> Manifest:
    # SIGTERM cuts streams, SIGUSR1 finishes them. The endpoints forget the pod during the sleep, then the
    # hook lasts until HAProxy is done.
    stop = "sleep 5; kill -USR1 1; while kill -0 1 2>/dev/null; do sleep 1; done"
    return {
        "name": "haproxy",
        "image": gateway.spec.load_balancer.image or defaults.haproxy_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["haproxy", "-db", "-f", f"{_CONFIG_FOLDER}/{_CONFIG_FILE}"],
        "ports": [
            {"name": "http", "containerPort": TRAFFIC_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": container_security(),
        "livenessProbe": http_probe(
            "/healthz", "metrics", periodSeconds=10, failureThreshold=3, timeoutSeconds=3
        ),
        "readinessProbe": http_probe(
            "/readyz", "metrics", periodSeconds=2, failureThreshold=2, timeoutSeconds=2
        ),
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", stop]}}},
        "volumeMounts": [
            {"name": "configuration", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            {"name": "tenants", "mountPath": _TENANTS_FOLDER, "readOnly": True},
        ],
    }


def deployment(gateway: Gateway, defaults: Defaults, digest: str) -> Manifest:
    """Return the Deployment of HAProxy; `digest` covers its configuration and the tenant map."""
    own = names(gateway)
    match_labels = selector_labels(gateway, COMPONENT)
    tenants = {
        "secretName": own.tenants,
        "defaultMode": 0o440,
        "items": [{"key": config.TENANT_MAP, "path": config.TENANT_MAP}],
    }
    template = {
        "metadata": {"labels": labels(gateway, COMPONENT), "annotations": {START_ANNOTATION: digest}},
        "spec": {
            "serviceAccountName": own.haproxy,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": _GRACE_SECONDS,
            "securityContext": pod_security(),
            "topologySpreadConstraints": spread(match_labels),
            "containers": [_container(gateway, defaults)],
            "volumes": [
                {"name": "configuration", "configMap": {"name": own.haproxy}},
                {"name": "tenants", "secret": tenants},
            ],
        },
    }
    return {
        **child(gateway, "apps/v1", "Deployment", own.haproxy, COMPONENT),
        "spec": {
            "replicas": gateway.spec.load_balancer.replicas,
            "revisionHistoryLimit": 3,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "selector": {"matchLabels": match_labels},
            "template": template,
        },
    }
