"""Which worker leaves now, if any: workers come together and leave one by one.

A worker leaves because there shall be fewer (the highest number first), or to be replaced by one of a newer
template. At most one is on its way out at a time, and only while all others that stay are ready and every
HAProxy sends them connections; whoever has been retired without that holding any more is told to stay.
Nothing is remembered: the same sight gives the same step.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.balancers import UNRESPONSIVE_MESSAGE
from proofgate_operator.plan.drain import drain_status
from proofgate_operator.plan.pods import pod_trouble
from proofgate_operator.plan.rollout import needs_surge, next_rollout_step
from proofgate_operator.plan.shards import Shard


class RemovalReason(StrEnum):
    """Why a worker leaves."""

    ROLLING = "Rolling"
    SCALING_DOWN = "ScalingDown"


@dataclass(frozen=True)
class ScalingStep:
    """The step to take.

    `replicas` is what the StatefulSet is asked for, `retire` the worker that is to be on its way out since
    `since`, `stay` are those told to stay, `replace` is the pod to delete. `blocked` is why a scale-down
    waits, `stalled` why a roll does, `forced` that somebody wants the one all the same; `note` is what the
    step costs.
    """

    replicas: int
    removal_reason: RemovalReason | None = None
    shard_to_retire: Shard | None = None
    since: float | None = None
    retirements_to_cancel: tuple[Shard, ...] = ()
    shard_to_replace: Shard | None = None
    waiting_for: str = ""
    blocked_reason: str | None = None
    stalled_reason: str | None = None
    forced: bool = False
    note: str | None = None

    @property
    def leaving_ordinal(self) -> int | None:
        """The number of the worker that is to leave now, whether it retires first or not."""
        shard = self.shard_to_retire or self.shard_to_replace
        return None if shard is None else shard.ordinal

    @property
    def is_time_driven(self) -> bool:
        """Whether time alone moves it on."""
        return self.removal_reason is not None and not (
            self.stalled_reason or (self.blocked_reason and self.shard_to_retire is None)
        )


def no_scaling_step(asked: int, shards: Iterable[Shard]) -> ScalingStep:
    """Return the step of a gateway in which nothing is to move now."""
    return ScalingStep(asked, retirements_to_cancel=_retirements_to_cancel(shards, None, asked))


def _retirements_to_cancel(shards: Iterable[Shard], candidate: Shard | None, asked: int) -> tuple[Shard, ...]:
    """Return the workers that were retired and are not to leave now."""
    return tuple(
        shard
        for shard in shards
        if shard.retiring and shard is not candidate and not shard.terminating and shard.ordinal < asked
    )


def _unready_reason(shards: Iterable[Shard], target: int, worker: str) -> str | None:
    """Return which of the workers that stay is not ready, and why."""
    by_number = {shard.ordinal: shard for shard in shards}
    for number in range(target):
        shard = by_number.get(number)
        if shard is None:
            return f"{worker}-{number} does not exist"
        if not shard.ready and not (shard.retiring and not shard.terminating):
            return pod_trouble(shard.pod) or f"{shard.name} is leaving"
        if shard.balancer_view.missing_reason and not shard.retiring:
            return shard.balancer_view.missing_reason
        if shard.balancer_view.is_unresponsive:
            return UNRESPONSIVE_MESSAGE
    return None


def next_scaling_step(
    gateway: Gateway,
    statefulset: Manifest | None,
    shards: tuple[Shard, ...],
    *,
    begun: bool,
    now: float,
    obstacle: str | None,
    unfit: str | None = None,
) -> ScalingStep:
    """Return the step to take towards the workers that the spec asks for.

    `begun` says that a roll was under way at the last reconcile, `obstacle` why no new worker could start
    or an old one seal its log (the volume), `unfit` why no new one would be as the spec wants it. `now` is in
    seconds since 1970.
    """
    desired = gateway.spec.replicas
    if statefulset is None:
        return ScalingStep(desired)
    asked: int = statefulset["spec"]["replicas"]
    surges = (unfit is None and needs_surge(desired, gateway.spec.rollout.surge, shards)) or (
        # The surplus worker stays until the one that it stands in for is back.
        begun and desired == 1 and asked == 2 and gateway.spec.rollout.surge
    )
    forced = gateway.force_scale_down == desired and asked > desired
    target = desired + 1 if surges and not forced else desired
    if target > asked:
        purpose = RemovalReason.ROLLING if surges else None
        return ScalingStep(
            target,
            purpose,
            retirements_to_cancel=_retirements_to_cancel(shards, None, asked),
            waiting_for="a second worker",
        )

    roll = next_rollout_step(shards, target, asked, begun, obstacle or unfit)
    if surges and roll is None:
        # The roll is done: what is left is to take the surplus worker away.
        target = desired
    if roll and not forced:
        movement = _drain_step(gateway, roll.candidate, shards, asked, now)
        pending = roll.stalled_reason or f"waiting for {roll.waiting_for}"
        blocked = f"workers are being replaced; {pending}" if asked > target else None
        return replace(
            movement,
            removal_reason=RemovalReason.ROLLING,
            waiting_for=roll.waiting_for,
            blocked_reason=blocked,
            stalled_reason=roll.stalled_reason,
        )
    gone = [shard for shard in shards if shard.ordinal >= asked]
    if gone:
        return replace(
            no_scaling_step(asked, shards),
            removal_reason=RemovalReason.SCALING_DOWN,
            waiting_for=gone[-1].name,
        )
    if asked == target:
        return no_scaling_step(asked, shards)
    unsafe = obstacle or _unready_reason(shards, target, statefulset["metadata"]["name"])
    return replace(
        _scale_down(gateway, shards, asked, now, None if forced else unsafe),
        removal_reason=RemovalReason.SCALING_DOWN,
        forced=forced,
        blocked_reason=unsafe,
    )


def _scale_down(
    gateway: Gateway, shards: tuple[Shard, ...], asked: int, now: float, unsafe: str | None
) -> ScalingStep:
    """Return the next step of the highest worker's leaving, or of what it has to wait for."""
    idle = no_scaling_step(asked, shards)
    if unsafe:
        return replace(idle, waiting_for=unsafe)
    last = next((shard for shard in shards if shard.ordinal == asked - 1), None)
    if last is None or last.terminating:
        return replace(idle, replicas=asked - 1)
    movement = _drain_step(gateway, last, shards, asked, now)
    # Its pod is not deleted: the StatefulSet does that, and makes no successor.
    replicas = asked - 1 if movement.shard_to_replace else asked
    return replace(movement, replicas=replicas, shard_to_replace=None, waiting_for=last.name)


def _drain_step(
    gateway: Gateway, candidate: Shard | None, shards: tuple[Shard, ...], asked: int, now: float
) -> ScalingStep:
    """Return the next step of a worker's leaving; `replace` is set once it may go."""
    stay = _retirements_to_cancel(shards, candidate, asked)
    if candidate is None:
        return ScalingStep(asked, retirements_to_cancel=stay)
    found = drain_status(candidate, now, gateway.spec.timeouts.drain_seconds)
    return ScalingStep(
        asked,
        shard_to_retire=candidate if found.since is not None else None,
        since=found.since,
        retirements_to_cancel=stay,
        shard_to_replace=candidate if found.can_terminate else None,
        note=found.note,
    )
