"""How tenants move between workers: to a new one in stages, and from one that leaves before it does.

What has been reached stands in annotations on the Secret of HAProxy's maps, so that an operator that was
killed is followed by one that goes on. A worker's first stage needs no operator: it holds before the worker
is ready.
"""

import math
from collections.abc import Mapping

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.load_balancer import Affinity
from proofgate_operator.build.owners import STAGES, Shares, Stage
from proofgate_operator.plan.scaling import Movement
from proofgate_operator.plan.shards import Shard

#: A stage lasts so long, at least.
STAGE_SECONDS = 2


def next_shares(
    gateway: Gateway, before: Shares | None, shards: tuple[Shard, ...], movement: Movement, now: float
) -> Shares:
    """Return how much of its tenants each worker shall have.

    `before` is what they have had until now; None when there was none: then all begin with the whole. `now`
    is in seconds since 1970.
    """
    count = movement.replicas
    if before is None:
        return Shares(count)
    by_number = {shard.ordinal: shard for shard in shards}
    members = min(before.members, count)
    joining = {
        number: stage
        for number in range(members, count)
        if (stage := _stage(before.joining.get(number), by_number.get(number), now))
    }
    while members in joining and joining[members].percent == STAGES[-1]:
        del joining[members]
        members += 1
    reached = Shares(members, joining)
    return Shares(members, joining, _away(gateway, before, reached, by_number, movement, now))


def _stage(stage: Stage | None, shard: Shard | None, now: float) -> Stage | None:
    """Return the stage that a new worker is to be in; None for the first."""
    if not _takes_over(shard):
        return stage
    assert shard is not None
    if stage is None:
        due = shard.ready_for(STAGE_SECONDS)
        return Stage(STAGES[1], math.ceil(now)) if due else None
    # A clock that was set back must not make anybody wait for it.
    if stage.percent == STAGES[-1] or abs(now - stage.since) < STAGE_SECONDS:
        return stage
    return Stage(next(percent for percent in STAGES if percent > stage.percent), math.ceil(now))


def _takes_over(shard: Shard | None) -> bool:
    return shard is not None and shard.ready and not shard.retiring


def _away(
    gateway: Gateway,
    before: Shares,
    reached: Shares,
    by_number: Mapping[int, Shard],
    movement: Movement,
    now: float,
) -> tuple[int, ...]:
    """Return the workers for which another one is to stand in, the one that leaves at the end."""
    if gateway.spec.load_balancer.affinity is not Affinity.REQUIRED:
        return ()
    leaving = movement.leaves
    kept = [
        number
        for number in before.away
        if number < movement.replicas and number != leaving and not _back(by_number.get(number))
    ]
    # Somebody else deleted its pod, to drain a node for example.
    kept += [
        number
        for number, shard in sorted(by_number.items())
        if number < movement.replicas and shard.terminating and number not in (*kept, leaving)
    ]
    return (*kept, *([leaving] if leaving is not None and leaving < movement.replicas else []))


def _back(shard: Shard | None) -> bool:
    return _takes_over(shard) and shard is not None and shard.sight.missing is None


def taking_over(shares: Shares, shards: tuple[Shard, ...], movement: Movement) -> tuple[int, ...]:
    """Return the workers whose tenants time alone brings: those that are new, and those that have just come
    back."""
    moving = []
    for shard in shards:
        new = shard.ordinal < movement.replicas and shares.percent(shard.ordinal) < STAGES[-1]
        returns = shard.ordinal in shares.away and shard.ordinal != movement.leaves
        if _takes_over(shard) and (new or returns):
            moving.append(shard.ordinal)
    return tuple(moving)
