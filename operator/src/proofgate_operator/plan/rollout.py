"""Rolls a new template out to the workers one by one: the next worker is replaced only when the previous one
is ready again and every HAProxy sends it connections."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proofgate_operator.plan.balancers import UNRESPONSIVE_MESSAGE, awaits_discovery
from proofgate_operator.plan.pods import pod_trouble
from proofgate_operator.plan.shards import Shard


@dataclass(frozen=True)
class RolloutStep:
    """A rollout in progress: the worker to replace next, or what is awaited, or why the rollout is
    stalled."""

    candidate: Shard | None
    waiting_for: str
    stalled_reason: str | None = None


def needs_surge(replicas: int, surge: bool, shards: Iterable[Shard]) -> bool:
    """Return whether a gateway with one worker gets a second one while the first is replaced."""
    return surge and replicas == 1 and any(shard.outdated for shard in shards if shard.ordinal < replicas)


def next_rollout_step(
    shards: Sequence[Shard], target: int, asked: int, begun: bool, obstacle: str | None
) -> RolloutStep | None:
    """Return the rollout of the workers that stay, `target` of `asked`; None if there is none.

    `begun`: a rollout was in progress at the last reconcile; it ends when every worker is ready. `obstacle`
    is why no new worker could start; None if nothing prevents it.
    """
    among = {shard.ordinal: shard for shard in shards if shard.ordinal < asked}
    staying = [shard for number, shard in among.items() if number < target]
    outdated = [shard for shard in staying if shard.outdated and not shard.terminating]
    settled = len(staying) == target and all(shard.ready for shard in staying)
    if not outdated and (not begun or settled):
        return None
    if obstacle:
        return RolloutStep(None, "the volume", obstacle)
    stuck = [shard for shard in staying if not shard.outdated and shard.stuck]
    if stuck:
        unfound = stuck[0].balancer_view.missing_reason if awaits_discovery(stuck[0].pod) else None
        return RolloutStep(None, stuck[0].name, unfound or pod_trouble(stuck[0].pod))
    gone = [shard for shard in shards if shard.ordinal >= asked]
    if gone:
        return RolloutStep(None, gone[-1].name)
    # A worker that is not ready is replaced first, because no client is affected.
    order = sorted(outdated, key=lambda shard: (shard.serving, not shard.retiring, -shard.ordinal))
    candidate = order[0] if order else None
    for number in range(asked):
        shard = among.get(number)
        if (shard is None and number < target) or (shard and shard.terminating):
            return RolloutStep(None, f"the successor of worker {number}")
        if shard is None or number >= target or shard is candidate:
            continue
        # An outdated worker that serves no one is replaced in its turn and not waited for.
        if shard.outdated and not shard.serving:
            continue
        if not shard.ready or shard.balancer_view.missing_reason:
            return RolloutStep(
                None,
                shard.name,
                shard.balancer_view.missing_reason if shard.balancer_view.is_overdue else None,
            )
    if candidate is not None and candidate.serving and candidate.balancer_view.is_unresponsive:
        return RolloutStep(None, candidate.name, UNRESPONSIVE_MESSAGE)
    return RolloutStep(candidate, candidate.name if candidate else "the workers")
