"""Measures how long pods have been in their current state, by the operator's monotonic clock.

The times in a pod come from its node and the API server, whose clocks may differ from the operator's by
hours. So these times only distinguish one transition from another: a duration is counted from the operator's
first observation. A new operator process starts counting again, and so waits a little longer than necessary.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.pods import pod_conditions

#: A pod's uid and the type of a condition; the type is empty for the pod itself.
_DurationKey = tuple[str, str]
_NO_CONDITION = ""


@dataclass(frozen=True)
class PodDurations:
    """Seconds for which each pod, and each of its conditions in its current state, has been observed."""

    seconds: Mapping[_DurationKey, float] = field(default_factory=lambda: MappingProxyType({}))

    def observed_for(self, pod: Manifest) -> float:
        """Return for how many seconds a pod has been observed."""
        return self.seconds.get((_uid(pod), _NO_CONDITION), 0.0)

    def condition_true_for(self, pod: Manifest, condition: str) -> float:
        """Return for how many seconds a condition of a pod has been True without interruption; 0 while it is
        not."""
        if pod_conditions(pod).get(condition, {}).get("status") != "True":
            return 0.0
        return self.seconds.get((_uid(pod), condition), 0.0)


class PodFirstSeenTimes:
    """The first observation of each pod of one gateway, and of each transition of its conditions."""

    def __init__(self) -> None:
        self._first: dict[_DurationKey, tuple[object, float]] = {}

    def observe(self, pods: Iterable[Manifest], now: float) -> PodDurations:
        """Record the pods that exist at `now`, in seconds of a monotonic clock; other pods are forgotten."""
        found: dict[_DurationKey, tuple[object, float]] = {}
        for pod in pods:
            for place, transition in _transitions(pod):
                before = self._first.get(place)
                same = before is not None and before[0] == transition
                found[place] = before if before is not None and same else (transition, now)
        self._first = found
        return PodDurations({place: now - since for place, (_, since) in found.items()})


def _uid(pod: Manifest) -> str:
    return str(pod["metadata"].get("uid"))


def _transitions(pod: Manifest) -> Iterable[tuple[_DurationKey, object]]:
    uid = _uid(pod)
    yield (uid, _NO_CONDITION), None
    for kind, condition in pod_conditions(pod).items():
        yield (uid, kind), (condition.get("status"), condition.get("lastTransitionTime"))
