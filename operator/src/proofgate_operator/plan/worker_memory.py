"""The memory of workers, which limits the bodies and responses they may buffer.

All workers read one file, and apply its buffer limits while they run. Their memory is a property of their
pods, and changes only when the pods are replaced.
"""

from collections.abc import Iterable, Iterator

from proofgate_schema.limits import Limits

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.quantity import parse_bytes, parse_quantity
from proofgate_operator.api.worker import (
    MEMORY_TOO_SMALL,
    MIN_BODY_MEMORY,
    MIN_BUFFERED_BODIES,
    MIN_MEMORY,
    READ_BUFFER_FACTOR,
)
from proofgate_operator.build.naming import Manifest
from proofgate_operator.build.statefulset import CONTAINER
from proofgate_operator.build.worker_config import base_memory, max_body_bytes
from proofgate_operator.plan.problems import Problem


def min_worker_memory(gateway: Gateway, pods: Iterable[Manifest]) -> int:
    """Return the memory in bytes of the smallest worker, among existing and future workers."""
    return min([parse_bytes(gateway.spec.worker.memory), *_limits(pods)])


def _limits(pods: Iterable[Manifest]) -> Iterator[int]:
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or []:
            limits = (container.get("resources") or {}).get("limits") or {}
            memory = parse_quantity(limits.get("memory"))
            if container["name"] == CONTAINER and memory is not None:
                yield int(memory)


def memory_problems(gateway: Gateway) -> Iterator[Problem]:
    """Yield a problem if workers have too little memory: below the minimum of any gateway, which the schema
    refuses for new gateways, or below the needs of this gateway's features."""
    memory, otherwise = parse_bytes(gateway.spec.worker.memory), base_memory(gateway)
    bodies = max(
        MIN_BODY_MEMORY,
        (READ_BUFFER_FACTOR + MIN_BUFFERED_BODIES) * (max_body_bytes(gateway.spec.limits) or 0),
    )
    if memory < MIN_MEMORY:
        yield Problem("SpecInvalid", MEMORY_TOO_SMALL)
    elif memory - otherwise < bodies:
        causes, remedies = zip(*_memory_consumers(gateway), strict=True)
        message = (
            f"spec.worker.memory must be at least {_mebibytes(otherwise + bodies)}Mi with this"
            f" {' and '.join(causes)}: a worker then needs {_mebibytes(otherwise)}Mi, and "
            f"{_mebibytes(bodies)}Mi for bodies and responses; or make"
            f" {', '.join(remedies)} smaller"
        )
        yield Problem("SpecInvalid", message)


def _memory_consumers(gateway: Gateway) -> Iterator[tuple[str, str]]:
    """Yield each section that needs memory, and the fields that determine how much."""
    if gateway.spec.analysis is not None:
        yield "spec.analysis", "maxCopyBytes, maxAnswerBytes, window or maxPairs"
    if gateway.spec.analysis is None or gateway.spec.limits != Limits():
        yield "spec.limits", "bodyBytes, connections or headBytes"


def _mebibytes(size: int) -> int:
    return -(-size >> 20)
