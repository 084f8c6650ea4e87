"""The retention job: a CronJob that mounts the ledger's volume and its own state, and executes the manifest's
holds and retention. If the gateway has an auditor, the job waits until the auditor's log contains what the
job signed, and destroys nothing before.

Runs never overlap: the next run is skipped while one is active, and an exclusive lock in the state is the
last safeguard. A run reports its result in its termination message: the operator reads only the pod's status.
"""

import hashlib
import json

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.keeping import Keeping
from proofgate_operator.build import auditor
from proofgate_operator.build.gateway_secrets import SIGNING_KEY
from proofgate_operator.build.naming import (
    KEEPING_PLAN_ANNOTATION,
    LEDGER_VOLUME,
    Defaults,
    Manifest,
    child_manifest,
    labels,
    names,
)
from proofgate_operator.build.pods import container_security, pod_security, pull_secrets
from proofgate_operator.build.storage import is_deleted_with_gateway, state_claim
from proofgate_operator.build.worker_config import LEDGER_FOLDER

COMPONENT = "retention"
CONTAINER = "retention"

_STATE_FOLDER = "/var/lib/proofgate-retention"
_KEY_FOLDER = "/etc/proofgate-retention"
_PLAN_FOLDER = "/etc/keeping-plan"
_PLAN_FILE = "plan.json"
_REPORT = "/dev/termination-log"
_PRIVATE_MODE = 0o440
_RESOURCES = {"cpu": "500m", "memory": "512Mi"}
#: Exit codes of a run that has reported why it cannot proceed; any other failure is retried.
_FINAL_EXIT_CODES = [1, 2, 10]
_RETRIES = 3
_DAY_SECONDS = 86_400
#: Days beyond a log's age for which all workers may be down before a run considers its own clock wrong.
_GRACE_DAYS = 7


def claim_name(gateway: Gateway, keeping: Keeping) -> str:
    """Return the name of the claim of the retention job's state, whether or not the operator creates it."""
    return keeping.storage.existing_claim or names(gateway).retention


def claim(gateway: Gateway, keeping: Keeping) -> Manifest:
    """Return the claim of the retention job's state."""
    return state_claim(gateway, names(gateway).retention, COMPONENT, keeping.storage)


def service_account(gateway: Gateway) -> Manifest:
    """Return a service account without permissions."""
    head = child_manifest(gateway, "v1", "ServiceAccount", names(gateway).retention, COMPONENT)
    return {**head, "automountServiceAccountToken": False}


def state_config_map(gateway: Gateway, data: dict[str, str]) -> Manifest:
    """Return the ConfigMap about the retention job's state. It exists as long as the state."""
    owned = is_deleted_with_gateway(gateway)
    head = child_manifest(gateway, "v1", "ConfigMap", names(gateway).retention, COMPONENT, owned=owned)
    return {**head, "data": data}


def digest(keeping: Keeping) -> str:
    """Return the identifier of a plan in reports, which changes with the section `keeping`."""
    said = json.dumps(_plan_content(keeping), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _plan_content(keeping: Keeping) -> Manifest:
    return {
        "retention": keeping.retention.to_document(),
        "holds": [hold.to_document() for hold in keeping.holds],
    }


def plan(gateway: Gateway, keeping: Keeping, key: str, known: int | None) -> str:
    """Return the plan for `proofgate ledger retention`. `key` is the verifying key of the retention job that
    may execute it; empty while none may, because the Secret is mounted as it is when a run starts. `known` is
    the number of holds ever recorded in the state; None: the state is new."""
    first: Manifest = {"begin": True} if known is None else {"known": known}
    # A running worker starts a new log at least this often, even if it is idle.
    quiet = int(gateway.spec.ledger.rotation.seconds) // _DAY_SECONDS + _GRACE_DAYS
    whole = {
        "digest": digest(keeping),
        "retentionKey": key,
        **first,
        "quietDays": quiet,
        **_plan_content(keeping),
    }
    return json.dumps(whole, sort_keys=True, separators=(",", ":"))


def cronjob(
    gateway: Gateway,
    keeping: Keeping,
    ledger_key: str,
    key: str,
    known: int | None,
    suspend: bool,
    defaults: Defaults,
    auditor_key: str | None = None,
) -> Manifest:
    """Return the CronJob of the retention job.

    `ledger_key` is the ledger's verifying key; `key` and `known` are those of `plan`; `suspend` prevents
    runs. `auditor_key` is the verifying key of the auditor whose log it waits for; None: it waits for none.
    """
    # Part of the pod template: no run executes a plan that is older than its CronJob.
    template = {
        "metadata": {
            "labels": labels(gateway, COMPONENT),
            "annotations": {KEEPING_PLAN_ANNOTATION: plan(gateway, keeping, key, known)},
        },
        "spec": _pod(gateway, keeping, ledger_key, auditor_key, defaults),
    }
    return {
        **child_manifest(gateway, "batch/v1", "CronJob", names(gateway).retention, COMPONENT),
        "spec": {
            "schedule": keeping.schedule,
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "suspend": suspend,
            # The newest Job of each kind stays, so that its result can be read.
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "metadata": {"labels": labels(gateway, COMPONENT)},
                "spec": {
                    "backoffLimit": _RETRIES,
                    "podFailurePolicy": {
                        "rules": [
                            {
                                "action": "FailJob",
                                "onExitCodes": {
                                    "containerName": CONTAINER,
                                    "operator": "In",
                                    "values": _FINAL_EXIT_CODES,
                                },
                            },
                            {
                                "action": "Ignore",
                                "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                            },
                        ]
                    },
                    "template": template,
                },
            },
        },
    }


def _auditor_options(gateway: Gateway, key: str | None, defaults: Defaults) -> tuple[str, ...]:
    """Return the options by which a run waits for the auditor's log. Plain HTTP is safe: the data leads to
    what the auditor signed, so a man in the middle can only delay a run."""
    if key is None:
        return ()
    host = f"{names(gateway).auditor}.{gateway.namespace}.svc.{defaults.cluster_domain}"
    return ("--auditor", f"http://{host}:{auditor.PORT}", "--auditor-key", key)


def _pod(
    gateway: Gateway, keeping: Keeping, ledger_key: str, auditor_key: str | None, defaults: Defaults
) -> Manifest:
    own, key = names(gateway), keeping.signing_key_secret_ref
    plan_of = {"fieldPath": f"metadata.annotations['{KEEPING_PLAN_ANNOTATION}']"}
    return {
        "restartPolicy": "Never",
        "serviceAccountName": own.retention,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(defaults),
        **pull_secrets(defaults),
        "containers": [
            {
                "name": CONTAINER,
                # Always the operator's own release, even if workers use another image, because its plan is
                # made here.
                "image": defaults.worker_image,
                "imagePullPolicy": "IfNotPresent",
                "command": [
                    *("/opt/proofgate/bin/proofgate", "ledger", "retention", "--ledger", LEDGER_FOLDER),
                    *("--state", _STATE_FOLDER, "--signing-key", f"{_KEY_FOLDER}/{SIGNING_KEY}"),
                    *("--ledger-key", ledger_key, "--plan", f"{_PLAN_FOLDER}/{_PLAN_FILE}"),
                    *("--report", _REPORT),
                    # The author of a run's signatures: anyone who may edit this manifest.
                    *("--author", f"GovernanceGateway {gateway.namespace}/{gateway.name}"),
                    *_auditor_options(gateway, auditor_key, defaults),
                ],
                "resources": {"requests": _RESOURCES, "limits": _RESOURCES},
                "securityContext": container_security(),
                "terminationMessagePath": _REPORT,
                "terminationMessagePolicy": "File",
                "volumeMounts": [
                    {"name": LEDGER_VOLUME, "mountPath": LEDGER_FOLDER},
                    {"name": "state", "mountPath": _STATE_FOLDER},
                    {"name": "signing-key", "mountPath": _KEY_FOLDER, "readOnly": True},
                    {"name": "plan", "mountPath": _PLAN_FOLDER, "readOnly": True},
                    {"name": "tmp", "mountPath": "/tmp"},
                ],
            }
        ],
        "volumes": [
            {
                "name": LEDGER_VOLUME,
                "persistentVolumeClaim": {
                    "claimName": gateway.spec.ledger.volume.existing_claim or own.claim
                },
            },
            {"name": "state", "persistentVolumeClaim": {"claimName": claim_name(gateway, keeping)}},
            {
                "name": "signing-key",
                "secret": {
                    "secretName": key.name,
                    "defaultMode": _PRIVATE_MODE,
                    "items": [{"key": key.key, "path": SIGNING_KEY}],
                },
            },
            {
                "name": "plan",
                "downwardAPI": {
                    "defaultMode": _PRIVATE_MODE,
                    "items": [{"path": _PLAN_FILE, "fieldRef": plan_of}],
                },
            },
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
