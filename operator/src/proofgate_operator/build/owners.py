"""Which worker a tenant belongs to, and how much of its tenants a worker has already.

HAProxy's ring knows which workers are up and gives the tenants of one that is away to others. What stands in
the map of owners goes before it: explicit placements, and every tenant when the affinity is required. A new
worker takes its tenants in stages: by its weight on the ring, and by a hash of their names in the map.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from proofgate_operator.api.gateway import MAX_REPLICAS, Gateway
from proofgate_operator.api.load_balancer import Affinity

#: On the Secret of HAProxy's maps: how many workers have all of their tenants.
MEMBERS_ANNOTATION = "proofgate.dev/members"
#: There too: workers that take their tenants in stages, as `<ordinal>=<per cent>@<seconds since 1970>`.
JOINING_ANNOTATION = "proofgate.dev/joining"
#: There too: workers that leave, or have just come back, the one that left last at the end.
ABSENT_ANNOTATION = "proofgate.dev/away"

#: How much of its tenants a new worker has, in per cent, one stage after the other.
RAMP_PERCENTAGES = (34, 67, 100)
_FULL_PERCENT = RAMP_PERCENTAGES[-1]
_STAGE = re.compile(r"([0-9]{1,2})=([0-9]{1,3})@([0-9]{1,12})", re.ASCII)


@dataclass(frozen=True)
class RampStage:
    """How much of its tenants a new worker has, in per cent, and since when, in seconds since 1970."""

    percent: int
    started_at: int


@dataclass(frozen=True)
class WorkerShares:
    """How much of its tenants each worker has.

    Workers with ordinals below `members` have all of them; those in `joining` are on their way; every other
    has the first stage's share as soon as it is ready. For those `away` another one stands in while they are
    down, because they go, or went, on purpose; the one that left last is at the end.
    """

    members: int
    joining: Mapping[int, RampStage] = field(default_factory=dict)
    absent: tuple[int, ...] = ()

    def percent(self, ordinal: int) -> int:
        """Return how much of its tenants a worker has."""
        if ordinal < self.members:
            return _FULL_PERCENT
        stage = self.joining.get(ordinal)
        return stage.percent if stage else RAMP_PERCENTAGES[0]

    @property
    def annotations(self) -> dict[str, str]:
        """What `read_shares` reads them from."""
        found = {MEMBERS_ANNOTATION: str(self.members)}
        if self.joining:
            stages = sorted(self.joining.items())
            found[JOINING_ANNOTATION] = " ".join(
                f"{ordinal}={stage.percent}@{stage.started_at}" for ordinal, stage in stages
            )
        if self.absent:
            found[ABSENT_ANNOTATION] = " ".join(map(str, self.absent))
        return found


def read_shares(annotations: Mapping[str, str]) -> WorkerShares | None:
    """Return the shares that stand in annotations; None where nobody has had tenants yet.

    What somebody wrote there that is none is passed over.
    """
    members = annotations.get(MEMBERS_ANNOTATION, "")
    if not (members.isascii() and members.isdecimal()):
        return None
    stages = map(_STAGE.fullmatch, annotations.get(JOINING_ANNOTATION, "").split())
    away = annotations.get(ABSENT_ANNOTATION, "").split()
    return WorkerShares(
        min(int(members), MAX_REPLICAS),
        {int(found[1]): RampStage(int(found[2]), int(found[3])) for found in stages if found},
        tuple(dict.fromkeys(int(word) for word in away if re.fullmatch("[0-9]{1,2}", word, re.ASCII))),
    )


def weights(shares: WorkerShares) -> dict[int, int]:
    """Return the weight on HAProxy's ring of each worker that has not all of its tenants.

    Workers that are not there yet are among them: whenever one comes up, it begins with the first stage.
    """
    found = {ordinal: shares.percent(ordinal) for ordinal in range(MAX_REPLICAS)}
    return {ordinal: percent for ordinal, percent in found.items() if percent < _FULL_PERCENT}


@dataclass(frozen=True)
class Owner:
    """The worker that a tenant belongs to, and who serves it while that one is down; None for nobody."""

    ordinal: int
    backup: int | None = None


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _rank_workers(tenant: str, count: int) -> list[int]:
    """Return the workers in the order in which a tenant would be theirs (rendezvous hashing): one worker more
    or less moves only the tenants that it gets or had."""
    return sorted(range(count), key=lambda ordinal: _hash(f"{tenant}/{ordinal}"), reverse=True)


def owner(tenant: str, placement: int | None, count: int, shares: WorkerShares) -> Owner:
    """Return the worker that a tenant belongs to among `count`, and who stands in for it."""
    ranked = _rank_workers(tenant, count)
    # The same tenants move at a stage, whatever the worker.
    place = int.from_bytes(_hash(f"{tenant}/stage")[:8]) * 100 >> 64
    taken = (ordinal for ordinal in ranked if place < shares.percent(ordinal))
    ordinal = placement if placement is not None else next(taken, ranked[0])
    if shares.percent(ordinal) == _FULL_PERCENT and ordinal not in shares.absent:
        return Owner(ordinal)
    absent = {away: position for position, away in enumerate(shares.absent, start=1)}
    others = [other for other in ranked if other != ordinal]
    # Who has all of its tenants and is not on its way is up. Of the others, who came back first is the best.
    others.sort(key=lambda other: (shares.percent(other) < _FULL_PERCENT, absent.get(other, 0)))
    return Owner(ordinal, others[0] if others else None)


def plans_with_shared_limits(gateway: Gateway) -> tuple[str, ...]:
    """Return the plans whose limits the GatewayTenants of one namespace share."""
    return tuple(sorted(plan.name for plan in gateway.spec.plans if plan.shared_limits is not None))


def placement_group(tenant: str, plan: str) -> str:
    """Return what the place of a GatewayTenant comes from that shares the limits of its plan: whoever shares
    them has the same, so that one worker counts all of them. No name has a `_`."""
    return f"{tenant.partition('/')[0]}_{plan}"


def owners(gateway: Gateway, count: int, shares: WorkerShares) -> dict[str, Owner]:
    """Return the worker of each tenant that HAProxy's ring does not decide on, among `count` workers.

    Only where the affinity is required somebody has to stand in: otherwise the ring does.
    """
    required = gateway.spec.load_balancer.affinity is Affinity.REQUIRED
    found: dict[str, Owner] = {}
    for tenant in gateway.spec.tenants:
        placement = tenant.placement if tenant.placement is not None and tenant.placement < count else None
        if required:
            found[tenant.name] = owner(tenant.name, placement, count, shares)
        elif placement is not None:
            found[tenant.name] = Owner(placement)
    return found
