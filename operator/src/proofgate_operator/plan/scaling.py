"""Decides which worker leaves now, if any: workers are added together and leave one by one.

A worker leaves because of a scale-down (the highest number first), or to be replaced by a worker with a newer
template. At most one worker leaves at a time, and only while all other staying workers are ready and every
HAProxy sends them connections. If that no longer holds, the retirement is cancelled. Nothing is remembered:
the same observed state gives the same step.
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
    """The next step.

    `replicas` is the size of the StatefulSet, `shard_to_retire` the worker to retire (retiring since
    `since`), `retirements_to_cancel` the workers whose retirement is cancelled, `shard_to_replace` the worker
    whose pod is to be deleted. `blocked_reason` is why a scale-down waits, `stalled_reason` why a rollout
    does. `forced`: the user wants the scale-down anyway. `note` describes what the step costs.
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
        """The number of the leaving worker, whether it retires first or not; None if none leaves."""
        shard = self.shard_to_retire or self.shard_to_replace
        return None if shard is None else shard.ordinal

    @property
    def is_time_driven(self) -> bool:
        """Whether the next step needs only time."""
        return self.removal_reason is not None and not (
            self.stalled_reason or (self.blocked_reason and self.shard_to_retire is None)
        )


def no_scaling_step(asked: int, shards: Iterable[Shard]) -> ScalingStep:
    """Return the step of a gateway in which nothing may move now."""
    return ScalingStep(asked, retirements_to_cancel=_retirements_to_cancel(shards, None, asked))


def _retirements_to_cancel(shards: Iterable[Shard], candidate: Shard | None, asked: int) -> tuple[Shard, ...]:
    """Return the retired workers that do not have to leave now."""
    return tuple(
        shard
        for shard in shards
        if shard.retiring and shard is not candidate and not shard.terminating and shard.ordinal < asked
    )


def _unready_reason(shards: Iterable[Shard], target: int, worker: str) -> str | None:
    """Return which staying worker is not ready, and why; None if all are ready."""
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
    """Return the next step towards the number and template of workers in the spec.

    `begun`: a rollout was in progress at the last reconcile. `obstacle` is a fault of the volume by which no
    new worker could start or no old one could seal its log. `unfit` is why a new worker would not match the
    spec. `now` is in seconds since 1970.
    """
    desired = gateway.spec.replicas
    if statefulset is None:
        return ScalingStep(desired)
    asked: int = statefulset["spec"]["replicas"]
    surges = (unfit is None and needs_surge(desired, gateway.spec.rollout.surge, shards)) or (
        # The surplus worker stays until the worker that it replaces is back.
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
        # The rollout is complete, except for the removal of the surplus worker.
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
    """Return the next step for the leaving worker with the highest number, or what it has to wait for."""
    idle = no_scaling_step(asked, shards)
    if unsafe:
        return replace(idle, waiting_for=unsafe)
    last = next((shard for shard in shards if shard.ordinal == asked - 1), None)
    if last is None or last.terminating:
        return replace(idle, replicas=asked - 1)
    movement = _drain_step(gateway, last, shards, asked, now)
    # The StatefulSet deletes its pod without creating a successor.
    replicas = asked - 1 if movement.shard_to_replace else asked
    return replace(movement, replicas=replicas, shard_to_replace=None, waiting_for=last.name)


def _drain_step(
    gateway: Gateway, candidate: Shard | None, shards: tuple[Shard, ...], asked: int, now: float
) -> ScalingStep:
    """Return the next step of a worker's drain; `shard_to_replace` is set once the worker may terminate."""
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
