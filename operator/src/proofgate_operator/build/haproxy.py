"""HAProxy in front of the workers: its Deployment, and its configuration in a ConfigMap.

A sidecar in each pod (`proofgate gateway haproxy-sidecar`) updates the workers, maps and certificate of the
running HAProxy, so that a change of these replaces no pod.
"""

import math

from proofgate_schema.timeouts import ProviderTimeouts

from proofgate_operator.api.gateway import MAX_REPLICAS, Gateway
from proofgate_operator.api.load_balancer import AccessLog, Affinity
from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.build import haproxy_config, haproxy_maps, internal_tls, tenant_shards, worker_config
from proofgate_operator.build.naming import (
    START_ANNOTATION,
    Defaults,
    Manifest,
    child_manifest,
    labels,
    names,
    selector_labels,
)
from proofgate_operator.build.pod_overrides import override
from proofgate_operator.build.pods import (
    container_security,
    graceful_stop_lifecycle,
    http_probe,
    log_environment,
    pod_security,
    pull_secrets,
    topology_spread,
)

COMPONENT = "load-balancer"
TRAFFIC_PORT = 8080
#: Port for clients inside the cluster, if outside clients come through a load balancer that writes PROXY
#: headers.
INTERNAL_PORT = 8081
METRICS_PORT = 8404
AGENT_PORT = 8405

_CONFIG_FILE = "haproxy.cfg"
_CONFIG_FOLDER = "/etc/proofgate-haproxy"
_MAPS_FOLDER = "/etc/proofgate-tenants"
_TLS_FOLDER = "/etc/proofgate-tls"
#: HAProxy looks for a certificate's key in a file next to it. Only with this file ending can it replace both
#: together.
_CERTIFICATE = f"{_TLS_FOLDER}/tls.pem"
_INTERNAL_TLS_FOLDER = "/etc/proofgate-internal-tls"
_CLIENT_CERTIFICATE = f"{_INTERNAL_TLS_FOLDER}/{internal_tls.CHAIN_FILE}"
_LIVE_MAPS = (haproxy_maps.TENANT_MAP, haproxy_maps.OWNER_MAP, haproxy_maps.ROUTING_MAP)
#: The workers' addresses, in a volume that only the agent mounts.
ADDRESSES_FILE = "workers.map"
_ADDRESSES_FOLDER = "/etc/proofgate-workers"
_RUNTIME_FOLDER = "/run/proofgate-haproxy"
_RUNTIME_SOCKET = f"{_RUNTIME_FOLDER}/admin.sock"
#: This file outlives a HAProxy process, but not its pod.
_SERVER_STATE = f"{_RUNTIME_FOLDER}/servers.state"
#: The Secrets of the maps and of 32 shards contain 33 MiB at most. The map of keys contains tenants' names
#: twice, which adds at most 6 MiB, and exists twice (32 MiB) during a replacement. 100,000 keys take 9 MB.
_SHARED_MAPS_MEBIBYTES = 72
_MIN_SERVER_LINES = 8
#: Divisor of a worker's maximum connections: the part that one HAProxy admits per server line.
_SERVER_LINE_DIVISOR = 8
#: Seconds before the kubelet's SIGKILL, in which endpoints forget the pod and the last streams are closed.
_SHUTDOWN_MARGIN_SECONDS = 30


def server_line_count(replicas: int) -> int:
    """Return the number of server lines for `replicas` workers: the next power of two, at least 8.

    A line without an address behaves like an absent line, so scaling within this number changes neither
    HAProxy's configuration nor its pods.
    """
    return min(MAX_REPLICAS, max(_MIN_SERVER_LINES, 1 << math.ceil(math.log2(replicas))))


def render_config(gateway: Gateway, defaults: Defaults) -> str:
    """Return haproxy.cfg for the gateway's workers."""
    own = names(gateway)
    balancer, timeouts = gateway.spec.load_balancer, gateway.spec.timeouts
    suffix = f"{own.workers}.{gateway.namespace}.svc.{defaults.cluster_domain}"
    servers = tuple(
        haproxy_config.Server(
            ordinal,
            f"{own.worker}-{ordinal}.{suffix}",
            worker_config.TRAFFIC_PORT,
            worker_config.ADMIN_PORT,
        )
        for ordinal in range(server_line_count(gateway.spec.replicas))
    )
    return haproxy_config.render(
        haproxy_config.HAProxySettings(
            servers=servers,
            traffic_bind=_bind(defaults, TRAFFIC_PORT),
            metrics_bind=_bind(defaults, METRICS_PORT),
            runtime_socket=_RUNTIME_SOCKET,
            server_state=_SERVER_STATE,
            tenant_map=f"{_shared_maps_folder(gateway)}/{haproxy_maps.TENANT_MAP}",
            owner_map=f"{_shared_maps_folder(gateway)}/{haproxy_maps.OWNER_MAP}",
            routing_map=f"{_MAPS_FOLDER}/{haproxy_maps.ROUTING_MAP}",
            issuers=tuple(
                haproxy_config.TokenIssuer(issuer.issuer, issuer.tenant_claim)
                for issuer in (gateway.spec.jwt.issuers if gateway.spec.jwt else ())
            ),
            pinned=balancer.affinity is not Affinity.NONE,
            accepts_proxy_protocol=balancer.accept_proxy_protocol,
            connection_limits=_connection_limits(gateway),
            internal_bind=_bind(defaults, INTERNAL_PORT) if balancer.accept_proxy_protocol else None,
            certificate=_CERTIFICATE if balancer.tls else None,
            backend_tls=_backend_tls(gateway),
            requires_owner=balancer.affinity is Affinity.REQUIRED,
            log_all=balancer.access_log is AccessLog.ALL,
            max_header_bytes=gateway.spec.limits.head_bytes,
            header_timeout_seconds=math.ceil(timeouts.client_head_seconds),
            # The worker times out first, both for a silent provider and for an idle client, and records it.
            server_timeout_seconds=15
            + math.ceil(
                max(
                    timeouts.client_idle_seconds,
                    timeouts.client_body_seconds,
                    _server_timeout_seconds(gateway),
                )
            ),
            hard_stop_seconds=balancer.termination_grace_period_seconds - _SHUTDOWN_MARGIN_SECONDS,
        )
    )


def _shared_maps_folder(gateway: Gateway) -> str:
    """Return the folder of the maps to which GatewayTenants add entries."""
    return _MAPS_FOLDER if gateway.spec.allowed_tenants is None else _RUNTIME_FOLDER


def _command(gateway: Gateway) -> list[str]:
    command = ["haproxy", "-db", "-f", f"{_CONFIG_FOLDER}/{_CONFIG_FILE}"]
    if gateway.spec.allowed_tenants is None:
        return command
    return haproxy_maps.start_command(_MAPS_FOLDER, _RUNTIME_FOLDER, command)


def _backend_tls(gateway: Gateway) -> haproxy_config.BackendTls | None:
    if not gateway.tls_transition.haproxy_uses_tls:
        return None
    authorities = f"{_INTERNAL_TLS_FOLDER}/{internal_tls.AUTHORITIES_FILE}"
    return haproxy_config.BackendTls(
        _CLIENT_CERTIFICATE, authorities, internal_tls.worker_endpoint(gateway).host
    )


def _server_timeout_seconds(gateway: Gateway) -> float:
    """Return how long a worker may wait for silent providers: the sum over all providers of one model."""
    timeouts = gateway.spec.timeouts
    begin: dict[str, float] = {}
    idle = [timeouts.upstream_response_seconds]
    for provider in gateway.spec.providers:
        own = provider.timeouts or ProviderTimeouts()
        first_byte = own.first_byte_seconds or timeouts.upstream_first_byte_seconds
        begin[provider.name] = (own.connect_seconds or timeouts.upstream_connect_seconds) + (
            first_byte or timeouts.upstream_response_seconds
        )
        idle.append(own.idle_seconds or timeouts.upstream_response_seconds)
    waits = [
        sum(begin.get(name, 0) for name in {model.provider, *(route.provider for route in others)} if name)
        for model in gateway.spec.models
        for others in [(*model.routes, *model.fallbacks)]
    ]
    return min(max((*waits, *idle)), timeouts.answer_seconds)


def _bind(defaults: Defaults, port: int) -> str:
    """Return the bind address for all addresses of the pod: `:port` alone covers only IPv4 (HAProxy's manual,
    bind)."""
    return f":::{port} v4v6" if defaults.ipv6 else f":{port}"


def _connection_limits(gateway: Gateway) -> haproxy_config.ConnectionLimits:
    """Return the limits of connections: all HAProxy pods together open no more connections to a worker than
    it accepts."""
    balancer, accepted = gateway.spec.load_balancer, gateway.spec.limits.connections
    return haproxy_config.ConnectionLimits(
        max_total=accepted // _SERVER_LINE_DIVISOR * server_line_count(gateway.spec.replicas),
        max_per_server=accepted // balancer.replicas,
        max_new_per_source=balancer.connections_per_source,
    )


def config_map(gateway: Gateway, defaults: Defaults) -> Manifest:
    """Return the ConfigMap that holds haproxy.cfg."""
    head = child_manifest(gateway, "v1", "ConfigMap", names(gateway).haproxy, COMPONENT)
    return {**head, "data": {_CONFIG_FILE: render_config(gateway, defaults)}}


def _container(gateway: Gateway, defaults: Defaults) -> Manifest:
    # SIGTERM closes streams, SIGUSR1 lets them finish. Endpoints forget the pod during the sleep; then the
    # hook lasts until HAProxy has ended. A starting HAProxy ignores the signal, so it is repeated until it
    # takes effect.
    stop = "sleep 5; while kill -USR1 1 2>/dev/null; do sleep 1; done"
    return {
        "name": "haproxy",
        "image": gateway.spec.load_balancer.image or defaults.haproxy_image,
        "imagePullPolicy": "IfNotPresent",
        "command": _command(gateway),
        "ports": [
            {"name": "http", "containerPort": TRAFFIC_PORT, "protocol": "TCP"},
            *_internal_ports(gateway),
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "resources": _resources(gateway),
        "securityContext": container_security(),
        "livenessProbe": http_probe(
            "/healthz", "metrics", periodSeconds=10, failureThreshold=3, timeoutSeconds=3
        ),
        # The agent reports whether the pod accepts connections, because it knows whether HAProxy is up to
        # date. Without a worker, HAProxy itself answers with Retry-After.
        "readinessProbe": http_probe(
            "/healthz", "metrics", periodSeconds=2, failureThreshold=2, timeoutSeconds=2
        ),
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", stop]}}},
        "volumeMounts": [
            {"name": "configuration", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            *_shared_mounts(gateway),
        ],
    }


def _internal_ports(gateway: Gateway) -> list[Manifest]:
    wanted = gateway.spec.load_balancer.accept_proxy_protocol
    return [{"name": "inside", "containerPort": INTERNAL_PORT, "protocol": "TCP"}] if wanted else []


def _resources(gateway: Gateway) -> Manifest:
    said = gateway.spec.load_balancer.resources
    wanted = said.to_document() if said else {}
    asked, bounded = wanted.get("requests", {}), wanted.get("limits", {})
    limits = {"memory": f"{_memory_mebibytes(gateway)}Mi", **bounded}
    requests = {"cpu": "50m", "memory": "64Mi"}
    # Without explicit requests, the requests do not exceed the limits.
    capped = {
        name: min(amount, limits.get(name, amount), key=lambda text: parse_quantity(text) or 0)
        for name, amount in requests.items()
    }
    if "memory" not in bounded:
        most = [limits["memory"], asked.get("memory", "0")]
        limits["memory"] = max(most, key=lambda text: parse_quantity(text) or 0)
    return {"requests": {**capped, **asked}, "limits": limits}


def _memory_mebibytes(gateway: Gateway) -> int:
    # A TLS connection needs OpenSSL's state, up to 36 KiB, and a buffer for each active direction; with TLS
    # to the worker, that state twice.
    buffers = 2 * haproxy_config.buffer_bytes(gateway.spec.limits.head_bytes) >> 10
    each = buffers + (76 if gateway.tls_transition.haproxy_uses_tls else 36)
    return 128 + _connection_limits(gateway).max_total * each // 1024


def _shared_mounts(gateway: Gateway) -> list[Manifest]:
    """Return the mounts that HAProxy and the agent have at the same path: HAProxy identifies a map by its
    file path."""
    mounts: list[Manifest] = [
        {"name": "tenants", "mountPath": _MAPS_FOLDER, "readOnly": True},
        {"name": "runtime", "mountPath": _RUNTIME_FOLDER},
    ]
    if gateway.spec.load_balancer.tls:
        mounts.append({"name": "tls", "mountPath": _TLS_FOLDER, "readOnly": True})
    if gateway.tls_transition.haproxy_uses_tls:
        mounts.append({"name": internal_tls.VOLUME, "mountPath": _INTERNAL_TLS_FOLDER, "readOnly": True})
    return mounts


def _shared_maps_mebibytes(gateway: Gateway) -> int:
    return 0 if gateway.spec.allowed_tenants is None else _SHARED_MAPS_MEBIBYTES


def _agent(gateway: Gateway, defaults: Defaults) -> Manifest:
    addresses: Manifest = {"name": "addresses", "mountPath": _ADDRESSES_FOLDER, "readOnly": True}
    mounts = [*_shared_mounts(gateway), addresses]
    command = ["/opt/proofgate/bin/proofgate", "gateway", "haproxy-sidecar", "--socket", _RUNTIME_SOCKET]
    for name in _LIVE_MAPS:
        command += ["--map", f"{_MAPS_FOLDER}/{name}"]
    command += ["--weights", f"{_MAPS_FOLDER}/{haproxy_maps.WEIGHT_MAP}"]
    command += ["--workers", f"{_ADDRESSES_FOLDER}/{ADDRESSES_FILE}", "--server-state", _SERVER_STATE]
    if gateway.spec.load_balancer.tls:
        command += ["--certificate", _CERTIFICATE]
    if gateway.tls_transition.haproxy_uses_tls:
        command += ["--client-certificate", _CLIENT_CERTIFICATE]
    command += ["--ask", f"127.0.0.1:{TRAFFIC_PORT}"]
    if gateway.spec.load_balancer.accept_proxy_protocol:
        command.append("--ask-proxied")
    if gateway.spec.allowed_tenants is not None:
        command += ["--tenant-shards", worker_config.SHARDS_FOLDER, "--kept-maps", _RUNTIME_FOLDER]
        mounts.append({"name": "tenant-shards", "mountPath": worker_config.SHARDS_FOLDER, "readOnly": True})
    # Files in memory count as the writer's memory.
    kept = _shared_maps_mebibytes(gateway)
    environment = log_environment(gateway)
    return {
        "name": "haproxy-sidecar",
        # Always the operator's own release, even if workers use another image, because its options are set
        # here.
        "image": defaults.worker_image,
        "imagePullPolicy": "IfNotPresent",
        "command": [*command, "--listen", worker_config.listen_address(AGENT_PORT, defaults)],
        **({"env": environment} if environment else {}),
        "ports": [{"name": "agent", "containerPort": AGENT_PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "10m", "memory": "48Mi"}, "limits": {"memory": f"{128 + kept}Mi"}},
        "securityContext": container_security(),
        "livenessProbe": http_probe(
            "/healthz", "agent", periodSeconds=10, failureThreshold=3, timeoutSeconds=3
        ),
        "readinessProbe": http_probe(
            "/readyz", "agent", periodSeconds=1, failureThreshold=10, timeoutSeconds=2
        ),
        "lifecycle": graceful_stop_lifecycle(),
        "volumeMounts": mounts,
    }


def _volumes(gateway: Gateway) -> list[Manifest]:
    own = names(gateway)
    maps = {
        "secretName": own.tenants,
        "defaultMode": 0o440,
        "items": [{"key": name, "path": name} for name in (*_LIVE_MAPS, haproxy_maps.WEIGHT_MAP)],
    }
    volumes: list[Manifest] = [
        {"name": "configuration", "configMap": {"name": own.haproxy}},
        {"name": "tenants", "secret": maps},
        # Without it, the agent resolves the workers' names.
        {"name": "addresses", "configMap": {"name": own.addresses, "optional": True}},
        {
            "name": "runtime",
            "emptyDir": {"medium": "Memory", "sizeLimit": f"{1 + _shared_maps_mebibytes(gateway)}Mi"},
        },
    ]
    if gateway.spec.allowed_tenants is not None:
        # Only the agent mounts it: HAProxy receives the data through its socket.
        shards = tenant_shards.sources(
            gateway, "", (tenant_shards.KEYS, tenant_shards.TENANTS, tenant_shards.OWNERS)
        )
        volumes.append({"name": "tenant-shards", "projected": {"defaultMode": 0o440, "sources": shards}})
    tls = gateway.spec.load_balancer.tls
    if tls:
        items = [{"key": "tls.crt", "path": "tls.pem"}, {"key": "tls.key", "path": "tls.pem.key"}]
        secret = {"secretName": tls.certificate_secret_ref.name, "defaultMode": 0o440, "items": items}
        volumes.append({"name": "tls", "secret": secret})
    if gateway.tls_transition.haproxy_uses_tls:
        side = internal_tls.haproxy_endpoint(gateway)
        volumes.append(gateway.tls_transition.haproxy_volume or internal_tls.volume(side))
    return volumes


def deployment(gateway: Gateway, defaults: Defaults, digest: str) -> Manifest:
    """Return the Deployment of HAProxy; `digest` covers its configuration."""
    own = names(gateway)
    match_labels = selector_labels(gateway, COMPONENT)
    template = {
        "metadata": {"labels": labels(gateway, COMPONENT), "annotations": {START_ANNOTATION: digest}},
        "spec": {
            "serviceAccountName": own.haproxy,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": gateway.spec.load_balancer.termination_grace_period_seconds,
            "securityContext": pod_security(defaults),
            **pull_secrets(defaults),
            "topologySpreadConstraints": topology_spread(match_labels),
            "containers": [_container(gateway, defaults), _agent(gateway, defaults)],
            "volumes": _volumes(gateway),
        },
    }
    return {
        **child_manifest(gateway, "apps/v1", "Deployment", own.haproxy, COMPONENT),
        "spec": {
            "replicas": gateway.spec.load_balancer.replicas,
            "revisionHistoryLimit": 3,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "selector": {"matchLabels": match_labels},
            "template": override(template, gateway.spec.load_balancer.pod_template),
        },
    }
