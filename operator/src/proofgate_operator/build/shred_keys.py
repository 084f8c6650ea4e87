"""The Secret of tenants' shred keys: an entry per tenant, with one key per line, newest first.

The operator never removes an entry, and the Secret has no owner: like backups of the ledger, it outlives its
gateway.
"""

import base64
from collections.abc import Callable, Iterable

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.gateway_secrets import encode_data
from proofgate_operator.build.naming import Manifest, child_manifest, names

KEY_BYTES = 32
#: The maximum length of a Secret entry's name.
_MAX_ENTRY = 253


def shred_keys_entry(tenant: str) -> str | None:
    """Return the name of a tenant's Secret entry, and of the worker's file; None if it would be too long.

    The entry of `<namespace>/<name>` starts with an underscore, which no tenant's name does.
    """
    namespace, slash, name = tenant.partition("/")
    entry = f"_{namespace}_{name}" if slash else tenant
    return entry if len(entry) <= _MAX_ENTRY else None


def new_entries(entries: Iterable[str], random: Callable[[int], bytes]) -> dict[str, str]:
    """Return the data of a Secret with one key in each entry."""
    return encode_data({entry: f"{base64.b64encode(random(KEY_BYTES)).decode()}\n" for entry in entries})


def shred_keys_secret(gateway: Gateway, data: dict[str, str]) -> Manifest:
    """Return the Secret to create. It is never applied, because that would remove entries that others
    added."""
    head = child_manifest(gateway, "v1", "Secret", names(gateway).shred_keys, "worker", owned=False)
    return {**head, "type": "Opaque", "data": data}
