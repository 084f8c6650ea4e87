"""Which worker a tenant belongs to, where that is not left to HAProxy's ring.

The ring knows which workers are up and gives the tenants of one that is away to others. What stands in the
map of owners goes before it: explicit placements, and every tenant when the affinity is required.
"""

import hashlib
from collections.abc import Collection

from proofgate_operator.api.types import Affinity, Gateway

#: On the Secret of HAProxy's maps: how many workers own tenants.
MEMBERS_ANNOTATION = "proofgate.dev/members"


def members(replicas: int, before: int | None, ready: Collection[int]) -> int:
    """Return how many workers own tenants: those with ordinals below it.

    `replicas` are wanted, `before` owned tenants until now (None: nobody yet), `ready` are the ordinals of
    workers that are ready. A worker becomes an owner when it is ready for the first time, stays one while it
    is away, and ceases to be one as soon as it is to go.
    """
    if before is None:
        return replicas
    count = min(before, replicas)
    while count < replicas and count in ready:
        count += 1
    return max(count, 1)


def _hashed(tenant: str, count: int) -> int:
    """Return the worker with the highest hash (rendezvous hashing): one worker more or less moves only the
    tenants that it gets or had."""
    return max(range(count), key=lambda ordinal: hashlib.sha256(f"{tenant}/{ordinal}".encode()).digest())


def owners(gateway: Gateway, count: int) -> dict[str, int]:
    """Return the worker of each tenant that HAProxy's ring does not decide on, among `count` workers."""
    required = gateway.spec.load_balancer.affinity is Affinity.REQUIRED
    found: dict[str, int] = {}
    for tenant in gateway.spec.tenants:
        if tenant.placement is not None and tenant.placement < count:
            found[tenant.name] = tenant.placement
        elif required:
            found[tenant.name] = _hashed(tenant.name, count)
    return found
