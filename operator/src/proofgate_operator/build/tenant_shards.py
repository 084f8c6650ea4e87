"""The Secrets of GatewayTenants. There are 32, so that a change of one tenant writes only a small part, and
each is updated in the pods separately.

Workers read `keys` and `tenants`; HAProxy's agent also reads `owners`. Both accept a line from any shard.
Lines are sorted, so the same tenants give the same bytes.
"""

import hashlib
from collections.abc import Iterable, Mapping

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.gateway_secrets import encode_data
from proofgate_operator.build.naming import Manifest, child_manifest, names
from proofgate_operator.build.tenant_keys import KeyDigest

SHARDS = 32
KEYS = "keys"
TENANTS = "tenants"
OWNERS = "owners"
#: Annotation of a shard's Secret: the input of its owners.
OWNERS_INPUT_ANNOTATION = "proofgate.dev/owning"


def key_line(key: KeyDigest, tenant: str) -> str:
    """Return a key's line: its digest, its tenant, its name and its expiry."""
    end = "" if key.not_after is None else f" not_after={int(key.expires_at)}"
    return f"{key.digest} {tenant} {key.name}{end}\n"


def shard_digest(keys: str, tenants: str) -> str:
    """Return a digest of the keys and the tenants of one shard."""
    return hashlib.sha256(f"{keys}\n{tenants}".encode()).hexdigest()


def shard_secret(gateway: Gateway, shard: int, files: Mapping[str, str], owning: str) -> Manifest:
    """Return the Secret of one shard; `owning` is the input of its owners."""
    head = child_manifest(gateway, "v1", "Secret", names(gateway).tenant_shard(shard), "worker")
    if owning:
        head["metadata"]["annotations"] = {OWNERS_INPUT_ANNOTATION: owning}
    return {**head, "type": "Opaque", "data": encode_data(files)}


def sources(gateway: Gateway, folder: str, wanted: Iterable[str]) -> list[Manifest]:
    """Return the sources of a projected volume with the files of every shard below `folder`.

    They are optional, because an empty shard may have no Secret.
    """
    files = tuple(wanted)
    return [
        {
            "secret": {
                "name": names(gateway).tenant_shard(shard),
                "optional": True,
                "items": [{"key": name, "path": f"{folder}{shard:02}/{name}"} for name in files],
            }
        }
        for shard in range(SHARDS)
    ]
