"""How much memory workers have: what they may hold of bodies and answers follows from it.

All workers read one file, and take on what it lets them hold while they run; their memory is their pods', and
changes only when those are replaced.
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
    """Return the bytes of the smallest worker, of those that are there and those that are to come."""
    return min([parse_bytes(gateway.spec.worker.memory), *_limits(pods)])


def _limits(pods: Iterable[Manifest]) -> Iterator[int]:
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or []:
            limits = (container.get("resources") or {}).get("limits") or {}
            memory = parse_quantity(limits.get("memory"))
            if container["name"] == CONTAINER and memory is not None:
                yield int(memory)


def memory_problems(gateway: Gateway) -> Iterator[Problem]:
    """Yield that workers would have too little: for any gateway, which the schema refuses of new ones, or for
    what this one has them do besides."""
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
    """Yield each section that takes memory, and its fields that say how much."""
    if gateway.spec.analysis is not None:
        yield "spec.analysis", "maxCopyBytes, maxAnswerBytes, window or maxPairs"
    if gateway.spec.analysis is None or gateway.spec.limits != Limits():
        yield "spec.limits", "bodyBytes, connections or headBytes"


def _mebibytes(size: int) -> int:
    return -(-size >> 20)
