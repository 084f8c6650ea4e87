"""What an auditor needs where each worker has a volume of its own: whom to ask, and the token for it."""

import json
from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.volume import VolumeMode
from proofgate_operator.build.gateway_secrets import encoded
from proofgate_operator.build.naming import Defaults, Manifest, child, names
from proofgate_operator.build.worker_config import ADMIN_PORT

_FOLDER = "/etc/auditor-workers"
_LIST = "workers.json"
_TOKEN = "auditor-token"
_PRIVATE_MODE = 0o440


def are_asked(gateway: Gateway) -> bool:
    """Return whether workers serve their volumes to the auditor, which cannot mount them."""
    return gateway.spec.ledger.volume.mode is VolumeMode.PER_WORKER


def secret(gateway: Gateway, token: str, workers: int, defaults: Defaults) -> Manifest:
    """Return the Secret that the auditor mounts: the URLs of that many workers by their shards, and the
    token."""
    own = names(gateway)
    domain = f"{own.workers}.{gateway.namespace}.svc.{defaults.cluster_domain}"
    urls = {str(shard): f"http://{own.worker}-{shard}.{domain}:{ADMIN_PORT}" for shard in range(workers)}
    head = child(gateway, "v1", "Secret", own.auditor, "auditor")
    return {**head, "type": "Opaque", "data": encoded({_LIST: json.dumps(urls), _TOKEN: token})}


def options() -> Iterator[str]:
    """Yield the options of the auditor's command."""
    yield from ("--workers", f"{_FOLDER}/{_LIST}", "--worker-token", f"{_FOLDER}/{_TOKEN}")


def volume(gateway: Gateway) -> Manifest:
    """Return the volume of the auditor's pod."""
    mounted = {"secretName": names(gateway).auditor, "defaultMode": _PRIVATE_MODE}
    return {"name": "workers", "secret": mounted}


def mount() -> Manifest:
    """Return where its container has it."""
    return {"name": "workers", "mountPath": _FOLDER, "readOnly": True}
