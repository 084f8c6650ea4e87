"""For how long pods have been as they are, by the operator's own steady clock.

The times in a pod are those of its node and of the API server, whose clocks may differ from the operator's by
hours. So they only tell one transition from another: how long one lasts is counted from when the operator
first saw it. One that has just started counts anew, and waits a little longer than it has to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.pods import pod_conditions

#: A pod's uid and the type of a condition; of the pod itself, which has no type, an empty one.
_DurationKey = tuple[str, str]
_NO_CONDITION = ""


@dataclass(frozen=True)
class PodDurations:
    """For how many seconds each pod was seen, and each of its conditions as it is."""

    seconds: Mapping[_DurationKey, float] = field(default_factory=lambda: MappingProxyType({}))

    def observed_for(self, pod: Manifest) -> float:
        """Return for how long a pod was seen."""
        return self.seconds.get((_uid(pod), _NO_CONDITION), 0.0)

    def condition_true_for(self, pod: Manifest, condition: str) -> float:
        """Return for how long a condition of a pod was seen to be True without a break; 0 while it is not."""
        if pod_conditions(pod).get(condition, {}).get("status") != "True":
            return 0.0
        return self.seconds.get((_uid(pod), condition), 0.0)


class PodFirstSeenTimes:
    """When the pods of one gateway, and the transitions of their conditions, were first seen."""

    def __init__(self) -> None:
        self._first: dict[_DurationKey, tuple[object, float]] = {}

    def observe(self, pods: Iterable[Manifest], now: float) -> PodDurations:
        """Take in the pods that there are at `now`, in seconds of a steady clock; others are forgotten."""
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
