"""How one worker is drained: it retires first, which can be taken back, and goes when nobody would notice."""

from dataclasses import dataclass

from proofgate_operator.plan.shards import Shard

#: What a worker counted of its tenants' limits reaches the others within two seconds.
HAND_OVER_SECONDS = 3


@dataclass(frozen=True)
class Drain:
    """How far a worker is drained.

    `since` is when it began, in seconds since 1970; None for one that serves nobody and need not retire.
    `may_go` says that the next step, which cannot be taken back, may be taken; `note` what is lost by it.
    """

    since: float | None
    may_go: bool
    note: str | None = None


def drain(shard: Shard, now: float, drain_seconds: float) -> Drain:
    """Return how far a worker is drained.

    It goes when its last connection is closed and no HAProxy sends it another one. It is not waited for
    longer than exchanges have to finish when it is stopped: whoever is still connected then gets that time
    once more.
    """
    if not shard.serving:
        return Drain(None, True)
    since = now if shard.retiring_since is None else shard.retiring_since
    waited = now - since
    if waited < HAND_OVER_SECONDS:
        return Drain(since, False)
    sent_to = shard.sight.up_at
    if shard.report is not None and shard.report.idle and not sent_to:
        return Drain(since, True)
    if waited < drain_seconds:
        return Drain(since, False)
    reached = shard.report is not None and shard.report.reachable
    note = "still has connections open" if reached else "did not report whether it is idle"
    if reached and sent_to:
        note = f"still gets connections from {sent_to[0]}"
    return Drain(since, True, f"{shard.name} {note} after {drain_seconds:g} s")
