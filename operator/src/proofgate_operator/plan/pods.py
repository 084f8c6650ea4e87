"""Evaluates a pod's status: whether it is ready, and why not."""

from typing import Any

from proofgate_operator.build.naming import Manifest

#: Waiting reasons of a container that starts normally.
STARTING_REASONS = frozenset({"ContainerCreating", "PodInitializing"})


def ordinal(pod: Manifest) -> int:
    """Return the number of a worker's shard."""
    return int(pod["metadata"]["name"].rsplit("-", 1)[1])


def pod_conditions(pod: Manifest) -> dict[str, Manifest]:
    """Return a pod's conditions by type."""
    return {item["type"]: item for item in (pod.get("status") or {}).get("conditions") or []}


def is_ready(pod: Manifest) -> bool:
    """Return whether a pod should receive traffic."""
    ready = pod_conditions(pod).get("Ready", {}).get("status") == "True"
    return ready and not pod["metadata"].get("deletionTimestamp")


def unfinished_containers(pod: Manifest) -> list[Manifest]:
    """Return the status of each container that the pod waits for. Init containers come first, because the
    others wait for them; finished and running init containers are left out."""
    status = pod.get("status") or {}
    init = [
        container
        for container in status.get("initContainerStatuses") or []
        if "running" not in (state := container.get("state") or {})
        and (state.get("terminated") or {}).get("exitCode") != 0
    ]
    return [*init, *(status.get("containerStatuses") or [])]


def _container_trouble(container: Manifest) -> str | None:
    """Return why a container does not run, as a CamelCase reason and further details; None if it runs."""
    state = container.get("state") or {}
    waiting: dict[str, Any] | None = state.get("waiting")
    if waiting is None:
        ended = state.get("terminated") or {}
        if not ended.get("exitCode"):
            return None
        return _describe_reason(
            str(ended.get("reason", "Error")), _describe_container(container), _describe_exit(ended)
        )
    reason = str(waiting.get("reason", "no reason"))
    if reason in STARTING_REASONS:
        return reason
    image = f"image {container['image']}" if "mage" in reason and container.get("image") else ""
    stopped = (container.get("lastState") or {}).get("terminated") or {}
    return _describe_reason(
        reason,
        _describe_container(container),
        image,
        _describe_exit(stopped),
        str(waiting.get("message") or ""),
    )


def _describe_container(container: Manifest) -> str:
    return f"container {container['name']}" if container.get("name") else ""


def _describe_exit(ended: Manifest) -> str:
    return f"which exited with {ended['exitCode']}" if ended.get("exitCode") is not None else ""


def _describe_reason(reason: str, *known: str) -> str:
    told = ", ".join(filter(None, known))
    return f"{reason}: {told}" if told else reason


def pod_trouble(pod: Manifest) -> str | None:
    """Return why a pod is not ready according to its status; None if it is ready."""
    status = pod.get("status") or {}
    conditions = pod_conditions(pod)
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    name = pod["metadata"]["name"]
    if status.get("phase") == "Failed":
        # The kubelet refuses a pod this way, for example with SMTAlignmentError for half a physical core.
        return f"{name} failed: {status.get('reason', 'no reason')}: {status.get('message', '')}".rstrip(": ")
    for container in unfinished_containers(pod):
        trouble = _container_trouble(container)
        if trouble:
            return f"{name} waits: {trouble}"
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        reason = f"{scheduled.get('reason', '')}: {scheduled.get('message', '')}"
        return f"{name} is not scheduled: {reason}".rstrip(": ")
    if conditions.get("ContainersReady", {}).get("status") == "True":
        return f"{name} is ready, and waits until every HAProxy sends it connections"
    return f"{name} is not ready"
