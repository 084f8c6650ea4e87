"""Workers that serve but that not every HAProxy has found yet."""

from collections.abc import Iterable

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.balancers import awaits_discovery, is_discovered
from proofgate_operator.plan.shards import Shard


def newly_discovered_pods(shards: Iterable[Shard]) -> tuple[Manifest, ...]:
    """Return the pods that may become Ready: every HAProxy sends them connections, but their condition is not
    set yet."""
    return tuple(
        shard.pod
        for shard in shards
        if awaits_discovery(shard.pod) and is_discovered(shard.balancer_view, shard.served_seconds)
    )


def is_discovery_pending(shards: Iterable[Shard]) -> bool:
    """Return whether HAProxy is about to find a worker."""
    return any(awaits_discovery(shard.pod) and not shard.balancer_view.is_overdue for shard in shards)
