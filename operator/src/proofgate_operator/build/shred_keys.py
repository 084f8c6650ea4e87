"""The Secret of tenants' shred keys: an entry for each tenant, with a key in each line, newest first.

Nothing here takes an entry away, and the Secret has no owner: it outlives its gateway, as backups of the
ledger do.
"""

import base64
from collections.abc import Callable, Iterable

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.gateway_secrets import encode_data
from proofgate_operator.build.naming import Manifest, child_manifest, names

KEY_BYTES = 32
#: The longest name that an entry of a Secret can have.
_MAX_ENTRY = 253


def shred_keys_entry(tenant: str) -> str | None:
    """Return the entry that holds a tenant's keys, and the worker's file; None where it would be too long.

    That of `<namespace>/<name>` begins with an underscore, as no tenant's name does.
    """
    namespace, slash, name = tenant.partition("/")
    entry = f"_{namespace}_{name}" if slash else tenant
    return entry if len(entry) <= _MAX_ENTRY else None


def new_entries(entries: Iterable[str], random: Callable[[int], bytes]) -> dict[str, str]:
    """Return the data of a Secret with one key in each entry."""
    return encode_data({entry: f"{base64.b64encode(random(KEY_BYTES)).decode()}\n" for entry in entries})


def shred_keys_secret(gateway: Gateway, data: dict[str, str]) -> Manifest:
    """Return the Secret as it is made. It is never applied: that would take back what others add."""
    head = child_manifest(gateway, "v1", "Secret", names(gateway).shred_keys, "worker", owned=False)
    return {**head, "type": "Opaque", "data": data}
