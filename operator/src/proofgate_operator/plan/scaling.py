"""How many workers to ask for now, on the way to how many there shall be."""

from collections.abc import Iterable

from proofgate_operator.build.naming import Manifest


def ordinal(pod: Manifest) -> int:
    """Return the shard of a worker's pod."""
    return int(pod["metadata"]["name"].rsplit("-", 1)[1])


def next_replicas(desired: int, statefulset: Manifest | None, pods: Iterable[Manifest]) -> int:
    """Return the replicas to write.

    Up: all at once, every worker starts a log of its own. Down: one at a time, the highest ordinal first, and
    the next one only when the pod before is gone, that is: drained and sealed.
    """
    if statefulset is None:
        return desired
    current: int = statefulset["spec"]["replicas"]
    if desired >= current:
        return desired
    leaving = any(ordinal(pod) >= current for pod in pods)
    return current if leaving else current - 1
