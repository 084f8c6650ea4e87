"""How one worker is drained: it retires first, which can be taken back, and goes when nobody would notice."""

from dataclasses import dataclass

from proofgate_operator.plan.shards import Shard

#: What a worker counted of its tenants' limits reaches the others within two seconds.
HANDOVER_SECONDS = 3


@dataclass(frozen=True)
class DrainStatus:
    """How far a worker is drained.

    `since` is when it began, in seconds since 1970; None for one that serves nobody and need not retire.
    `can_terminate` says that the next step, which cannot be taken back, may be taken; `note` what is lost by it.
    """

    since: float | None
    can_terminate: bool
    note: str | None = None


def drain_status(shard: Shard, now: float, drain_seconds: float) -> DrainStatus:
    """Return how far a worker is drained.

    It goes when its last connection is closed and no HAProxy sends it another one. It is not waited for
    longer than exchanges have to finish when it is stopped: whoever is still connected then gets that time
    once more.
    """
    if not shard.serving:
        return DrainStatus(None, True)
    since = now if shard.retiring_since is None else shard.retiring_since
    waited = now - since
    if waited < HANDOVER_SECONDS:
        return DrainStatus(since, False)
    sent_to = shard.balancer_view.connected_balancers
    if shard.report is not None and shard.report.idle and not sent_to:
        return DrainStatus(since, True)
    if waited < drain_seconds:
        return DrainStatus(since, False)
    reached = shard.report is not None and shard.report.reachable
    note = "still has connections open" if reached else "did not report whether it is idle"
    if reached and sent_to:
        note = f"still gets connections from {sent_to[0]}"
    return DrainStatus(since, True, f"{shard.name} {note} after {drain_seconds:g} s")
