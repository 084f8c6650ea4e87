"""Moves tenants between workers: to a new worker in stages, and away from a leaving worker before it leaves.

The reached stage is stored in annotations on the Secret of HAProxy's maps, so a restarted operator continues
from it. A worker's first stage needs no operator: it applies before the worker is ready.
"""

import math
from collections.abc import Mapping

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.load_balancer import Affinity
from proofgate_operator.build.owners import RAMP_PERCENTAGES, RampStage, WorkerShares
from proofgate_operator.plan.scaling import ScalingStep
from proofgate_operator.plan.shards import Shard

#: The minimum duration of a stage in seconds.
MIN_STAGE_SECONDS = 2


def next_shares(
    gateway: Gateway,
    before: WorkerShares | None,
    shards: tuple[Shard, ...],
    movement: ScalingStep,
    now: float,
) -> WorkerShares:
    """Return the share of its tenants that each worker should serve.

    `before` are the current shares; None if there are none: then every worker starts with its full share.
    `now` is in seconds since 1970.
    """
    count = movement.replicas
    if before is None:
        return WorkerShares(count)
    by_number = {shard.ordinal: shard for shard in shards}
    members = min(before.members, count)
    joining = {
        number: stage
        for number in range(members, count)
        if (stage := _stage(before.joining.get(number), by_number.get(number), now))
    }
    while members in joining and joining[members].percent == RAMP_PERCENTAGES[-1]:
        del joining[members]
        members += 1
    reached = WorkerShares(members, joining)
    return WorkerShares(members, joining, _absent_workers(gateway, before, reached, by_number, movement, now))


def _stage(stage: RampStage | None, shard: Shard | None, now: float) -> RampStage | None:
    """Return the next stage of a new worker; None for the first stage."""
    if not _can_take_tenants(shard):
        return stage
    assert shard is not None
    if stage is None:
        due = shard.ready_for(MIN_STAGE_SECONDS)
        return RampStage(RAMP_PERCENTAGES[1], math.ceil(now)) if due else None
    # A clock that was set back must not cause a wait.
    if stage.percent == RAMP_PERCENTAGES[-1] or abs(now - stage.started_at) < MIN_STAGE_SECONDS:
        return stage
    return RampStage(next(percent for percent in RAMP_PERCENTAGES if percent > stage.percent), math.ceil(now))


def _can_take_tenants(shard: Shard | None) -> bool:
    return shard is not None and shard.ready and not shard.retiring


def _absent_workers(
    gateway: Gateway,
    before: WorkerShares,
    reached: WorkerShares,
    by_number: Mapping[int, Shard],
    movement: ScalingStep,
    now: float,
) -> tuple[int, ...]:
    """Return the workers that need a substitute; the leaving worker comes last."""
    if gateway.spec.load_balancer.affinity is not Affinity.REQUIRED:
        return ()
    leaving = movement.leaving_ordinal
    kept = [
        number
        for number in before.absent
        if number < movement.replicas and number != leaving and not _has_returned(by_number.get(number))
    ]
    # Another client deleted its pod, for example to drain a node.
    kept += [
        number
        for number, shard in sorted(by_number.items())
        if number < movement.replicas and shard.terminating and number not in (*kept, leaving)
    ]
    return (*kept, *([leaving] if leaving is not None and leaving < movement.replicas else []))


def _has_returned(shard: Shard | None) -> bool:
    return _can_take_tenants(shard) and shard is not None and shard.balancer_view.missing_reason is None


def workers_taking_over(
    shares: WorkerShares, shards: tuple[Shard, ...], movement: ScalingStep
) -> tuple[int, ...]:
    """Return the workers whose tenants return by time alone: new workers, and workers that have just come
    back."""
    moving = []
    for shard in shards:
        new = shard.ordinal < movement.replicas and shares.percent(shard.ordinal) < RAMP_PERCENTAGES[-1]
        returns = shard.ordinal in shares.absent and shard.ordinal != movement.leaving_ordinal
        if _can_take_tenants(shard) and (new or returns):
            moving.append(shard.ordinal)
    return tuple(moving)
