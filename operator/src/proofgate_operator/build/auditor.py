"""The auditor's objects: one pod that reads the ledger's volume (or asks workers that each have a volume),
and its state.

Two auditors must never write the same state. Therefore it is a StatefulSet of one: unlike a Deployment, its
controller creates no second pod before the first is known to be gone, even if a node is lost. With
`Parallel`, it also replaces a pod that never became ready. As a last safeguard, the state has an exclusive
lock. There is no disruption budget, because it would only block node drains: nothing is lost while the
auditor is down.
"""

import hashlib
from collections.abc import Iterator

from proofgate_operator.api.auditor import Auditor
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.index import Index
from proofgate_operator.api.upstream import CA_FILE
from proofgate_operator.api.witnesses import Witnesses
from proofgate_operator.build import auditor_workers, export_key, mirrors, oidc, siem
from proofgate_operator.build.gateway_secrets import SIGNING_KEY
from proofgate_operator.build.naming import (
    LEDGER_VOLUME,
    START_ANNOTATION,
    WITNESS_POLICY_ANNOTATION,
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
)
from proofgate_operator.build.readers import READERS_FILE
from proofgate_operator.build.storage import state_claim
from proofgate_operator.build.worker_config import LEDGER_FOLDER, listen_address

COMPONENT = "auditor"
CONTAINER = "auditor"
PORT = 9091

_STATE_FOLDER = "/var/lib/proofgate-auditor"
_KEY_FOLDER = "/etc/proofgate-auditor"
_HELD_AGGREGATE_FOLDER = "/etc/held-aggregate"
_WITNESS_FOLDER = "/etc/auditor-witnesses"
_POLICY_FILE = "policy"
_READERS_FOLDER = "/etc/auditor-readers"
#: Path in the state's folder, whose volume no worker mounts.
_INDEX_FOLDER = f"{_STATE_FOLDER}/index"
_PRIVATE_MODE = 0o440


def held_aggregate_entry(origin: str) -> str:
    """Return the ConfigMap entry for the held checkpoint of one log of tree heads: names contain slashes."""
    return hashlib.sha256(origin.encode()).hexdigest()[:32]


def claim_name(gateway: Gateway, auditor: Auditor) -> str:
    """Return the name of the claim of the auditor's state, whether or not the operator creates it."""
    return auditor.storage.existing_claim or names(gateway).auditor


def claim(gateway: Gateway, auditor: Auditor) -> Manifest:
    """Return the claim of the auditor's state."""
    return state_claim(gateway, names(gateway).auditor, COMPONENT, auditor.storage)


def service_account(gateway: Gateway) -> Manifest:
    """Return a service account without permissions."""
    head = child_manifest(gateway, "v1", "ServiceAccount", names(gateway).auditor, COMPONENT)
    return {**head, "automountServiceAccountToken": False}


def service(gateway: Gateway) -> Manifest:
    """Return the Service of the auditor's port."""
    return {
        **child_manifest(gateway, "v1", "Service", names(gateway).auditor, COMPONENT),
        "spec": {
            "type": "ClusterIP",
            "selector": selector_labels(gateway, COMPONENT),
            # Published data stays readable while the ledger cannot be read.
            "publishNotReadyAddresses": True,
            "ports": [{"name": "http", "port": PORT, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def _command(
    gateway: Gateway,
    auditor: Auditor,
    origin: str,
    ledger_key: str,
    keeping_key: str | None,
    defaults: Defaults,
) -> list[str]:
    asked = auditor_workers.workers_serve_volumes(gateway)
    source = auditor_workers.options(auditor, _STATE_FOLDER) if asked else ("--ledger", LEDGER_FOLDER)
    return [
        *("/opt/proofgate/bin/proofgate", "audit", "run", *source, "--state", _STATE_FOLDER),
        *("--signing-key", f"{_KEY_FOLDER}/{SIGNING_KEY}", "--ledger-key", ledger_key),
        # While no checkpoint is held, the auditor starts a new state; afterwards a lost state stops it.
        *("--held", f"{_HELD_AGGREGATE_FOLDER}/{held_aggregate_entry(origin)}"),
        *("--listen", listen_address(PORT, defaults)),
        *("--beat", str(auditor.beat_seconds), "--second-look", str(auditor.second_look_seconds)),
        *(("--keeping-key", keeping_key) if keeping_key else ()),
        *("--stall", str(auditor.stall_seconds), "--scrub", str(auditor.scrub_mebibytes)),
        *(_witness_options(auditor.witnesses) if auditor.witnesses else ()),
        *(_index_options(auditor.enabled_index) if auditor.enabled_index else ()),
        *mirrors.options(auditor.mirrors),
        *siem.options(auditor.siem),
    ]


def _index_options(index: Index) -> Iterator[str]:
    # On the auditor's own claim, even if a storage class puts all claims on one file system.
    yield from ("--index", _INDEX_FOLDER, "--same-volume")
    if index.retention_days is not None:
        yield from ("--index-days", str(index.retention_days))
    if index.has_readers:
        yield from ("--readers", f"{_READERS_FOLDER}/{READERS_FILE}")
    yield from oidc.options(index)
    yield from export_key.options(index)


def _has_readers(auditor: Auditor) -> bool:
    return auditor.enabled_index is not None and auditor.enabled_index.has_readers


def _witness_options(witnesses: Witnesses) -> Iterator[str]:
    yield from ("--witness-policy", f"{_WITNESS_FOLDER}/{_POLICY_FILE}")
    if witnesses.allow_http:
        yield "--allow-http-witnesses"
    if witnesses.ca_secret_ref or witnesses.ca_config_map_ref:
        yield from ("--witness-ca", f"{_WITNESS_FOLDER}/{CA_FILE}")


def _witness_volume(witnesses: Witnesses) -> Manifest:
    policy = {"fieldPath": f"metadata.annotations['{WITNESS_POLICY_ANNOTATION}']"}
    sources: list[Manifest] = [
        {"downwardAPI": {"items": [{"path": _POLICY_FILE, "fieldRef": policy}]}},
    ]
    # If the authorities are missing, the auditor reports it.
    for kind, reference in (("secret", witnesses.ca_secret_ref), ("configMap", witnesses.ca_config_map_ref)):
        if reference is not None:
            items = [{"key": reference.key, "path": CA_FILE}]
            sources.append({kind: {"name": reference.name, "items": items, "optional": True}})
    return {"name": "witnesses", "projected": {"defaultMode": _PRIVATE_MODE, "sources": sources}}


def _readers_volume(gateway: Gateway) -> Manifest:
    # Not the Secret that the spec names, so that an invalid one is not mounted.
    secret = {"secretName": names(gateway).auditor, "defaultMode": _PRIVATE_MODE}
    return {"name": "readers", "secret": secret}


def _container(
    gateway: Gateway,
    auditor: Auditor,
    origin: str,
    ledger_key: str,
    keeping_key: str | None,
    defaults: Defaults,
) -> Manifest:
    size = {"cpu": auditor.cpu, "memory": auditor.memory}
    environment = log_environment(gateway)
    if _has_readers(auditor):
        # Reads by a command in this container are recorded in the same access log as those of other readers.
        environment.insert(0, {"name": "PROOFGATE_ACCESS_LOG", "value": _STATE_FOLDER})
    return {
        "name": CONTAINER,
        "image": gateway.spec.worker.image or defaults.worker_image,
        "imagePullPolicy": "IfNotPresent",
        "command": _command(gateway, auditor, origin, ledger_key, keeping_key, defaults),
        **({"env": environment} if environment else {}),
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": size, "limits": size},
        "securityContext": container_security(),
        # The gateway's status shows the last log line of a refused start.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        # The rows of all logs are read before the port opens.
        "startupProbe": http_probe(
            "/healthz", "http", periodSeconds=1, failureThreshold=300, timeoutSeconds=1
        ),
        "livenessProbe": http_probe(
            "/healthz", "http", periodSeconds=10, failureThreshold=3, timeoutSeconds=3
        ),
        "readinessProbe": http_probe(
            "/readyz", "http", periodSeconds=2, failureThreshold=3, timeoutSeconds=2
        ),
        "lifecycle": graceful_stop_lifecycle(),
        "volumeMounts": [
            (
                auditor_workers.mount()
                if auditor_workers.workers_serve_volumes(gateway)
                else {"name": LEDGER_VOLUME, "mountPath": LEDGER_FOLDER, "readOnly": True}
            ),
            {"name": "state", "mountPath": _STATE_FOLDER},
            {"name": "signing-key", "mountPath": _KEY_FOLDER, "readOnly": True},
            {"name": "held", "mountPath": _HELD_AGGREGATE_FOLDER, "readOnly": True},
            *(
                [{"name": "witnesses", "mountPath": _WITNESS_FOLDER, "readOnly": True}]
                if auditor.witnesses
                else []
            ),
            *(
                [{"name": "readers", "mountPath": _READERS_FOLDER, "readOnly": True}]
                if _has_readers(auditor)
                else []
            ),
            *oidc.mounts(auditor.enabled_index),
            *export_key.mounts(auditor.enabled_index),
            *mirrors.mounts(auditor.mirrors),
            *siem.mounts(auditor.siem),
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def _ledger_volume(gateway: Gateway) -> Manifest:
    claim = gateway.spec.ledger.volume.existing_claim or names(gateway).claim
    # Mounted read-only in the container only: if one node mounts an export in two ways, NFS clients share one
    # mount.
    return {"name": LEDGER_VOLUME, "persistentVolumeClaim": {"claimName": claim}}


def statefulset(
    gateway: Gateway,
    auditor: Auditor,
    origin: str,
    ledger_key: str,
    digest: str,
    defaults: Defaults,
    keeping_key: str | None = None,
) -> Manifest:
    """Return the StatefulSet of the auditor.

    `origin` is the name of its key, `ledger_key` the ledger's verifying key, `keeping_key` the verifying key
    of the retention job (None: there is none). `digest` covers the Secret values that the auditor reads only
    at its start: its signing key, the export key, and the secret of its OpenID client.
    """
    own = names(gateway)
    match_labels = selector_labels(gateway, COMPONENT)
    key, witnesses = auditor.signing_key_secret_ref, auditor.witnesses
    annotations = {START_ANNOTATION: digest, **oidc.annotations(auditor.enabled_index)}
    if witnesses:
        annotations[WITNESS_POLICY_ANNOTATION] = witnesses.policy
    template = {
        "metadata": {"labels": labels(gateway, COMPONENT), "annotations": annotations},
        "spec": {
            "serviceAccountName": own.auditor,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            # Time for the running poll and its writes.
            "terminationGracePeriodSeconds": 60,
            "securityContext": pod_security(defaults),
            **pull_secrets(defaults),
            "containers": [_container(gateway, auditor, origin, ledger_key, keeping_key, defaults)],
            "volumes": [
                auditor_workers.volume(gateway)
                if auditor_workers.workers_serve_volumes(gateway)
                else _ledger_volume(gateway),
                {"name": "state", "persistentVolumeClaim": {"claimName": claim_name(gateway, auditor)}},
                {
                    "name": "signing-key",
                    "secret": {
                        "secretName": key.name,
                        "defaultMode": _PRIVATE_MODE,
                        "items": [{"key": key.key, "path": SIGNING_KEY}],
                    },
                },
                {
                    "name": "held",
                    "configMap": {"name": own.auditor, "optional": True, "defaultMode": _PRIVATE_MODE},
                },
                *([_witness_volume(witnesses)] if witnesses else []),
                *([_readers_volume(gateway)] if _has_readers(auditor) else []),
                *oidc.volumes(auditor.enabled_index),
                *export_key.volumes(gateway, auditor.enabled_index),
                *mirrors.volumes(auditor.mirrors),
                *siem.volumes(auditor.siem),
                {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
            ],
        },
    }
    return {
        **child_manifest(gateway, "apps/v1", "StatefulSet", own.auditor, COMPONENT),
        "spec": {
            "replicas": 1,
            "serviceName": own.auditor,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": match_labels},
            "template": override(template, auditor.pod_template),
        },
    }
