"""The workers: one pod per core, Guaranteed, with the ledger's volume."""

from collections.abc import Sequence

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.ledger import SigningKeyRef
from proofgate_operator.api.upstream import CA_FILE
from proofgate_operator.build import internal_tls, tenant_shards
from proofgate_operator.build.gateway_secrets import ADMIN_TOKEN, SIGNING_KEY
from proofgate_operator.build.naming import (
    LEDGER_VOLUME,
    LOAD_BALANCED_CONDITION,
    START_ANNOTATION,
    Defaults,
    Manifest,
    child_manifest,
    labels,
    names,
    selector_labels,
    worker_account,
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
from proofgate_operator.build.worker_config import (
    ACCEPTED_FILE,
    ADMIN_PORT,
    CONFIG_FILE,
    CONFIG_FOLDER,
    HELD_CHECKPOINTS_FOLDER,
    INTERNAL_TLS_FOLDER,
    LEDGER_FOLDER,
    PROXY_FOLDER,
    SHARDS_FOLDER,
    SHRED_KEYS_FOLDER,
    TELEMETRY_FOLDER,
    TOKENS_FOLDER,
    TRAFFIC_PORT,
    provider_file,
)

COMPONENT = "worker"
#: The worker's container, to distinguish it from containers of a podTemplate.
CONTAINER = "worker"
#: Lifetime of a ServiceAccount token in seconds; the kubelet renews it after four fifths. Some clouds refuse
#: tokens that are valid for more than a day.
TOKEN_SECONDS = 3600
#: File mode 0440: only the worker's user and group can read it.
_PRIVATE_MODE = 0o440


def _configuration(gateway: Gateway) -> Manifest:
    """Return one projected volume: the configuration file and every file that it names.

    The kubelet replaces the content as a whole, so a running worker never sees a partial change. A provider's
    key is mounted from the user's Secret: adding or removing a provider with a key changes the template and
    so rolls the workers. (Files mounted by subPath would never be updated.)
    """
    own = names(gateway)
    spec = gateway.spec
    ledger = spec.ledger.signing_key_secret_ref or SigningKeyRef(name=own.ledger)
    sources: list[Manifest] = [
        {"configMap": {"name": own.config, "items": [{"key": CONFIG_FILE, "path": CONFIG_FILE}]}},
        # It does not exist before the first worker is ready.
        {
            "configMap": {
                "name": own.config,
                "items": [{"key": ACCEPTED_FILE, "path": ACCEPTED_FILE}],
                "optional": True,
            }
        },
        {"secret": {"name": own.tenants}},
        {"secret": {"name": own.admin, "items": [{"key": ADMIN_TOKEN, "path": f"admin/{ADMIN_TOKEN}"}]}},
        {"secret": {"name": ledger.name, "items": [{"key": ledger.key, "path": f"ledger/{SIGNING_KEY}"}]}},
    ]
    for provider in spec.providers:
        for _, file, reference in provider.secrets():
            item = {"key": reference.key, "path": provider_file(provider, file)}
            # Without the key, the worker refuses the provider's models and serves all others.
            sources.append({"secret": {"name": reference.name, "items": [item], "optional": True}})
        authorities = provider.tls.ca_config_map_ref if provider.tls else None
        if authorities is not None:
            item = {"key": authorities.key, "path": provider_file(provider, CA_FILE)}
            sources.append({"configMap": {"name": authorities.name, "items": [item], "optional": True}})
    for _, file, reference in spec.egress.secrets() if spec.egress else ():
        item = {"key": reference.key, "path": f"{PROXY_FOLDER}/{file}"}
        # Without the credentials, nothing is sent through the proxy; everything else works.
        sources.append({"secret": {"name": reference.name, "items": [item], "optional": True}})
    for _, file, reference in spec.telemetry.secrets() if spec.telemetry else ():
        item = {"key": reference.key, "path": f"{TELEMETRY_FOLDER}/{file}"}
        # Without the value, nothing is exported; everything else works.
        sources.append({"secret": {"name": reference.name, "items": [item], "optional": True}})
    if spec.allowed_tenants is not None:
        folder = SHARDS_FOLDER.removeprefix(f"{CONFIG_FOLDER}/")
        sources += tenant_shards.sources(gateway, f"{folder}/", (tenant_shards.KEYS, tenant_shards.TENANTS))
    return {"name": "configuration", "projected": {"defaultMode": _PRIVATE_MODE, "sources": sources}}


def _checkpoints(gateway: Gateway) -> Manifest:
    # The ConfigMap does not exist before a checkpoint is held; the first worker starts without it.
    name = names(gateway).checkpoints
    return {
        "name": "checkpoints",
        "configMap": {"name": name, "optional": True, "defaultMode": _PRIVATE_MODE},
    }


def _shred_keys(gateway: Gateway) -> list[Manifest]:
    wanted = gateway.spec.ledger.shred_keys
    if wanted is None:
        return []
    # Not optional: a worker cannot start without it, and waits for it.
    name = wanted.secret_ref.name if wanted.secret_ref else names(gateway).shred_keys
    return [{"name": "shred-keys", "secret": {"secretName": name, "defaultMode": _PRIVATE_MODE}}]


def _tokens(gateway: Gateway) -> list[Manifest]:
    """Return the volume of ServiceAccount tokens, each for one cloud; the API server accepts none of them.

    The kubelet renews the tokens in time (KEP-1205). They need no webhook.
    """
    wanted = [
        {
            "serviceAccountToken": {
                "path": provider.name,
                "audience": provider.auth.token_audience,
                "expirationSeconds": TOKEN_SECONDS,
            }
        }
        for provider in gateway.spec.providers
        if provider.auth is not None and provider.auth.token_audience is not None
    ]
    projected = {"defaultMode": _PRIVATE_MODE, "sources": wanted}
    return [{"name": "identity-tokens", "projected": projected}] if wanted else []


def _internal_tls(gateway: Gateway) -> list[Manifest]:
    hop = gateway.tls_transition
    side = internal_tls.worker_endpoint(gateway)
    return [hop.worker_volume or internal_tls.volume(side)] if hop.certificate_mounted else []


def _container(gateway: Gateway, defaults: Defaults) -> Manifest:
    worker = gateway.spec.worker
    # Equal requests and limits make a pod Guaranteed. With whole cores, its core is exclusive if the
    # kubelet's CPU manager is static.
    size = {"cpu": worker.cpu, "memory": worker.memory}
    return {
        "name": CONTAINER,
        "image": worker.image or defaults.worker_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/opt/proofgate/bin/proofgate", "serve", "--config", f"{CONFIG_FOLDER}/{CONFIG_FILE}"],
        "env": [
            {
                "name": "PROOFGATE_SHARD",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}},
            },
            {"name": "PROOFGATE_ACCEPTED_CONFIG", "value": f"{CONFIG_FOLDER}/{ACCEPTED_FILE}"},
            *log_environment(gateway),
        ],
        "ports": [
            {"name": "traffic", "containerPort": TRAFFIC_PORT, "protocol": "TCP"},
            {"name": "admin", "containerPort": ADMIN_PORT, "protocol": "TCP"},
        ],
        "resources": {"requests": size, "limits": size},
        "securityContext": container_security(),
        # Recovery reads the predecessor's log before the worker is ready: allow five minutes.
        "startupProbe": http_probe(
            "/healthz", "admin", periodSeconds=1, failureThreshold=300, timeoutSeconds=1
        ),
        "livenessProbe": http_probe(
            "/healthz", "admin", periodSeconds=10, failureThreshold=3, timeoutSeconds=3
        ),
        # HAProxy has its own health check, and sends traffic before the pod is Ready.
        "readinessProbe": http_probe(
            "/readyz", "admin", periodSeconds=2, failureThreshold=2, timeoutSeconds=2
        ),
        "lifecycle": graceful_stop_lifecycle(),
        "volumeMounts": [
            {"name": "configuration", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": "checkpoints", "mountPath": HELD_CHECKPOINTS_FOLDER, "readOnly": True},
            *(
                {"name": volume["name"], "mountPath": SHRED_KEYS_FOLDER, "readOnly": True}
                for volume in _shred_keys(gateway)
            ),
            *(
                {"name": volume["name"], "mountPath": TOKENS_FOLDER, "readOnly": True}
                for volume in _tokens(gateway)
            ),
            *(
                {"name": volume["name"], "mountPath": INTERNAL_TLS_FOLDER, "readOnly": True}
                for volume in _internal_tls(gateway)
            ),
            {"name": LEDGER_VOLUME, "mountPath": LEDGER_FOLDER},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def _webhook_labels(gateway: Gateway) -> dict[str, str]:
    """Return the labels by which the webhook of Azure Workload Identity adds its variables and its token."""
    wanted = any(provider.auth and provider.auth.needs_azure_webhook for provider in gateway.spec.providers)
    return {"azure.workload.identity/use": "true"} if wanted else {}


def _shared_volume(gateway: Gateway) -> Manifest:
    claim = gateway.spec.ledger.volume.existing_claim or names(gateway).claim
    return {"name": LEDGER_VOLUME, "persistentVolumeClaim": {"claimName": claim}}


def _own_volumes(claim_templates: Sequence[Manifest]) -> Manifest:
    # The operator decides about claims; with any other policy, the StatefulSet's controller would own them.
    policy = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    return {"volumeClaimTemplates": list(claim_templates), "persistentVolumeClaimRetentionPolicy": policy}


def statefulset(
    gateway: Gateway,
    defaults: Defaults,
    replicas: int,
    digest: str,
    claim_templates: Sequence[Manifest] = (),
) -> Manifest:
    """Return the StatefulSet of the workers.

    `replicas` is the next step of a scaling, not always its end. `digest` covers the values that a worker
    reads only at its start. With `claim_templates`, each worker mounts its own claim; otherwise all mount the
    same one.
    """
    own = names(gateway)
    pod_labels = {**labels(gateway, COMPONENT), **_webhook_labels(gateway)}
    match_labels = selector_labels(gateway, COMPONENT)
    template = {
        "metadata": {"labels": pod_labels, "annotations": {START_ANNOTATION: digest}},
        "spec": {
            "serviceAccountName": worker_account(gateway),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": gateway.spec.worker.termination_grace_period_seconds,
            "securityContext": pod_security(defaults),
            **pull_secrets(defaults),
            "topologySpreadConstraints": topology_spread(match_labels),
            # The operator sets this condition once every HAProxy sends connections to the worker; the pod is
            # Ready only then. So the disruption budget lets the next worker be evicted only after that.
            "readinessGates": [{"conditionType": LOAD_BALANCED_CONDITION}],
            "containers": [_container(gateway, defaults)],
            "volumes": [
                _configuration(gateway),
                _checkpoints(gateway),
                *_shred_keys(gateway),
                *_tokens(gateway),
                *_internal_tls(gateway),
                *([] if claim_templates else [_shared_volume(gateway)]),
                {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
            ],
        },
    }
    return {
        **child_manifest(gateway, "apps/v1", "StatefulSet", own.worker, COMPONENT),
        "spec": {
            "replicas": replicas,
            "serviceName": own.workers,
            "podManagementPolicy": "Parallel",
            # The operator replaces pods one by one.
            "updateStrategy": {"type": "OnDelete"},
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": match_labels},
            "template": override(template, gateway.spec.worker.pod_template),
            **(_own_volumes(claim_templates) if claim_templates else {}),
        },
    }
