"""What a pod's status says: whether it is ready, and why it is not."""

from typing import Any

from proofgate_operator.build.naming import Manifest


def ordinal(pod: Manifest) -> int:
    """Return the shard of a worker's pod."""
    return int(pod["metadata"]["name"].rsplit("-", 1)[1])


def pod_conditions(pod: Manifest) -> dict[str, Manifest]:
    """Return a pod's conditions by their type."""
    return {item["type"]: item for item in (pod.get("status") or {}).get("conditions") or []}


def is_ready(pod: Manifest) -> bool:
    """Return whether a pod is to be sent traffic."""
    ready = pod_conditions(pod).get("Ready", {}).get("status") == "True"
    return ready and not pod["metadata"].get("deletionTimestamp")


def pod_trouble(pod: Manifest) -> str | None:
    """Return why a pod is not ready, as far as its status says; None if it is."""
    status = pod.get("status") or {}
    conditions = pod_conditions(pod)
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    name = pod["metadata"]["name"]
    if status.get("phase") == "Failed":
        # The kubelet refuses a pod this way, for example with SMTAlignmentError for half a physical core.
        return f"{name} failed: {status.get('reason', 'no reason')}: {status.get('message', '')}".rstrip(": ")
    for container in status.get("containerStatuses") or []:
        waiting: dict[str, Any] | None = (container.get("state") or {}).get("waiting")
        if waiting:
            return f"{name} waits: {waiting.get('reason', 'no reason')}"
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        reason = f"{scheduled.get('reason', '')}: {scheduled.get('message', '')}"
        return f"{name} is not scheduled: {reason}".rstrip(": ")
    return f"{name} is not ready"
