"""Workers that serve, and that not every HAProxy has found yet."""

from collections.abc import Iterable

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.balancers import is_found, waits_to_be_found
from proofgate_operator.plan.shards import Shard


def newly_found(shards: Iterable[Shard]) -> tuple[Manifest, ...]:
    """Return the pods that may be Ready: every HAProxy sends them connections, and nobody has said so yet."""
    return tuple(
        shard.pod
        for shard in shards
        if waits_to_be_found(shard.pod) and is_found(shard.sight, shard.served_seconds)
    )


def are_awaited(shards: Iterable[Shard]) -> bool:
    """Return whether HAProxy is about to find one."""
    return any(waits_to_be_found(shard.pod) and not shard.sight.late for shard in shards)
