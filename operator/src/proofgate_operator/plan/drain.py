"""Drains one worker: it retires first, which is reversible, and is terminated once no client would be
affected."""

from dataclasses import dataclass

from proofgate_operator.plan.shards import Shard

#: Seconds within which a worker's counts of its tenants' limits reach the other workers.
HANDOVER_SECONDS = 3


@dataclass(frozen=True)
class DrainStatus:
    """The progress of a worker's drain.

    `since` is the start of the drain in seconds since 1970; None for a worker that serves no one and need not
    retire. `can_terminate`: the pod may be deleted, which is irreversible. `note` says what is lost by that.
    """

    since: float | None
    can_terminate: bool
    note: str | None = None


def drain_status(shard: Shard, now: float, drain_seconds: float) -> DrainStatus:
    """Return the progress of a worker's drain.

    The worker may terminate when its last connection is closed and no HAProxy sends it new ones, at the
    latest after `drain_seconds`. Exchanges that are still open then get their time to finish once more.
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
