"""Objects of an auditor in the mode PerWorker: the list of workers to ask, and the token for it."""

import json
from collections.abc import Iterator

from proofgate_operator.api.auditor import Auditor
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.volume import VolumeMode
from proofgate_operator.build.gateway_secrets import encode_data
from proofgate_operator.build.naming import Defaults, Manifest, child_manifest, names
from proofgate_operator.build.readers import READERS_FILE
from proofgate_operator.build.worker_config import ADMIN_PORT

_FOLDER = "/etc/auditor-workers"
_WORKERS_FILE = "workers.json"
_TOKEN_FILE = "auditor-token"
_REPLICA_FOLDER = "replica"
_PRIVATE_MODE = 0o440


def workers_serve_volumes(gateway: Gateway) -> bool:
    """Return whether workers serve the contents of their volumes to the auditor, which cannot mount them."""
    return gateway.spec.ledger.volume.mode is VolumeMode.PER_WORKER


def secret(
    gateway: Gateway, token: str, workers: int, defaults: Defaults, index_readers: str | None = None
) -> Manifest:
    """Return the Secret that the auditor mounts: the URLs of `workers` workers by shard, the token, and the
    readers of its index, if any."""
    own = names(gateway)
    domain = f"{own.workers}.{gateway.namespace}.svc.{defaults.cluster_domain}"
    urls = {str(shard): f"http://{own.worker}-{shard}.{domain}:{ADMIN_PORT}" for shard in range(workers)}
    head = child_manifest(gateway, "v1", "Secret", own.auditor, "auditor")
    of_readers = {} if index_readers is None else {READERS_FILE: index_readers}
    entries = {_WORKERS_FILE: json.dumps(urls), _TOKEN_FILE: token, **of_readers}
    return {**head, "type": "Opaque", "data": encode_data(entries)}


def options(wanted: Auditor, state_folder: str) -> Iterator[str]:
    """Yield the options of the auditor's command. The auditor copies the logs to its own claim and reads them
    there."""
    yield from ("--workers", f"{_FOLDER}/{_WORKERS_FILE}", "--worker-token", f"{_FOLDER}/{_TOKEN_FILE}")
    if wanted.enabled_index is not None or wanted.mirrors or wanted.siem:
        yield from ("--replica", f"{state_folder}/{_REPLICA_FOLDER}")


def volume(gateway: Gateway) -> Manifest:
    """Return the volume of the auditor's pod."""
    mounted = {"secretName": names(gateway).auditor, "defaultMode": _PRIVATE_MODE}
    return {"name": "workers", "secret": mounted}


def mount() -> Manifest:
    """Return the volume mount of the auditor's container."""
    return {"name": "workers", "mountPath": _FOLDER, "readOnly": True}
