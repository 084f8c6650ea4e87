"""How much memory workers have: what they may hold of bodies and answers follows from it.

All workers read one file, and take on what it lets them hold while they run; their memory is their pods', and
changes only when those are replaced.
"""

from collections.abc import Iterable, Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.quantity import quantity, whole
from proofgate_operator.api.worker import BODIES_LEAST, MEMORY_FAULT, MEMORY_LEAST
from proofgate_operator.build.naming import Manifest
from proofgate_operator.build.statefulset import CONTAINER
from proofgate_operator.build.worker_config import memory_otherwise
from proofgate_operator.plan.problems import Problem


def least_memory(gateway: Gateway, pods: Iterable[Manifest]) -> int:
    """Return the bytes of the smallest worker, of those that are there and those that are to come."""
    return min([whole(gateway.spec.worker.memory), *_limits(pods)])


def _limits(pods: Iterable[Manifest]) -> Iterator[int]:
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or []:
            limits = (container.get("resources") or {}).get("limits") or {}
            memory = quantity(limits.get("memory"))
            if container["name"] == CONTAINER and memory is not None:
                yield int(memory)


def memory_problems(gateway: Gateway) -> Iterator[Problem]:
    """Yield that workers would have too little: for any gateway, which the schema refuses of new ones, or for
    what this one has them do besides."""
    memory, otherwise = whole(gateway.spec.worker.memory), memory_otherwise(gateway)
    if memory < MEMORY_LEAST:
        yield Problem("SpecInvalid", MEMORY_FAULT)
    elif memory - otherwise < BODIES_LEAST:
        message = (
            f"spec.worker.memory must be at least {_mebibytes(otherwise + BODIES_LEAST)}Mi with this"
            f" spec.analysis: a worker takes {_mebibytes(otherwise)}Mi with it besides the bodies and answers"
            " that it has, and needs 90Mi for those; or make maxCopyBytes, maxAnswerBytes, window or"
            " maxPairs smaller"
        )
        yield Problem("SpecInvalid", message)


def _mebibytes(size: int) -> int:
    return -(-size >> 20)
