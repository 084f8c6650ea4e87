"""Workers that serve, and that not every HAProxy has found yet."""

from collections.abc import Iterable

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.balancers import awaits_discovery, is_discovered
from proofgate_operator.plan.shards import Shard


def newly_discovered_pods(shards: Iterable[Shard]) -> tuple[Manifest, ...]:
    """Return the pods that may be Ready: every HAProxy sends them connections, and nobody has said so yet."""
    return tuple(
        shard.pod
        for shard in shards
        if awaits_discovery(shard.pod) and is_discovered(shard.balancer_view, shard.served_seconds)
    )


def is_discovery_pending(shards: Iterable[Shard]) -> bool:
    """Return whether HAProxy is about to find one."""
    return any(awaits_discovery(shard.pod) and not shard.balancer_view.is_overdue for shard in shards)
