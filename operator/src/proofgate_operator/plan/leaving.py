"""How one worker leaves: it retires first, which can be taken back, and goes when nobody would notice."""

from dataclasses import dataclass

from proofgate_operator.plan.shards import Shard

#: HAProxy notices within two seconds; what a worker counted of its tenants' limits reaches the others within
#: two as well.
HAND_OVER_SECONDS = 3


@dataclass(frozen=True)
class Farewell:
    """How far a worker's leaving has come.

    `since` is when it began, in seconds since 1970; None for one that serves nobody and need not retire.
    `may_go` says that the next step, which cannot be taken back, may be taken; `note` what is lost by it.
    """

    since: float | None
    may_go: bool
    note: str | None = None


def farewell(shard: Shard, now: float, drain_seconds: int) -> Farewell:
    """Return how far a worker's leaving has come.

    It goes when its last connection is closed. It is not waited for longer than exchanges have to finish when
    it is stopped: whoever is still connected then gets that time once more.
    """
    if not shard.serving:
        return Farewell(None, True)
    since = now if shard.retiring_since is None else shard.retiring_since
    waited = now - since
    if waited < HAND_OVER_SECONDS:
        return Farewell(since, False)
    if shard.report is not None and shard.report.idle:
        return Farewell(since, True)
    if waited < drain_seconds:
        return Farewell(since, False)
    reached = shard.report is not None and shard.report.reachable
    note = "still has connections open" if reached else "could not be asked whether it is idle"
    return Farewell(since, True, f"{shard.name} {note} after {drain_seconds} s")
