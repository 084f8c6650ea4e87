"""Creates shred keys; an existing key is never overwritten."""

import os

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import names
from proofgate_operator.build.shred_keys import new_entries, shred_keys_secret
from proofgate_operator.kube.apply import create, merge_patch
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.shred_keys import ShredKeysState


async def create_missing_shred_keys(client: Client, gateway: Gateway, keys: ShredKeysState) -> bool:
    """Create the missing keys. Return whether anything changed or has to be observed again.

    The Secret is written only if it still has the observed version, so a key that another client added is not
    overwritten.
    """
    data = new_entries(keys.to_make, os.urandom)
    if keys.version is None:
        await create(client, shred_keys_secret(gateway, data))
        return True
    patch = {"metadata": {"resourceVersion": keys.version}, "data": data}
    try:
        await merge_patch(client, "Secret", gateway.namespace, names(gateway).shred_keys, patch)
    except ApiError as error:
        if error.status != 409:
            raise
    return True
