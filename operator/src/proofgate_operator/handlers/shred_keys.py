"""Making shred keys: an entry that is there is never written again."""

import os

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import names
from proofgate_operator.build.shred_keys import new_entries, shred_keys_secret
from proofgate_operator.kube.apply import create, merge_patch
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.shred_keys import ShredKeysState


async def create_missing_shred_keys(client: Client, gateway: Gateway, keys: ShredKeysState) -> bool:
    """Make the keys that lack; return whether anything changed, or has to be looked at again.

    The Secret is written only as it was seen: a key that somebody else put there since is not overwritten.
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
