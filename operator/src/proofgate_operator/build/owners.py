"""The worker that owns each tenant, and the share of its tenants that a worker already serves.

HAProxy's ring contains the workers that are up, and gives the tenants of a worker that is down to others. The
map of owners takes precedence: it contains explicit placements, and every tenant if the affinity is required.
A new worker takes over its tenants in stages: by its weight on the ring, and by a hash of their names in the
map.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from proofgate_operator.api.gateway import MAX_REPLICAS, Gateway
from proofgate_operator.api.load_balancer import Affinity

#: Annotation of the Secret of HAProxy's maps: the number of workers that serve all of their tenants.
MEMBERS_ANNOTATION = "proofgate.dev/members"
#: Further annotation: workers that take over their tenants in stages, as `<ordinal>=<percent>@<seconds since
#: 1970>`.
JOINING_ANNOTATION = "proofgate.dev/joining"
#: Further annotation: workers that are leaving or have just returned; the last one to leave is at the end.
ABSENT_ANNOTATION = "proofgate.dev/away"

#: The stages of a new worker's share of its tenants, in percent.
RAMP_PERCENTAGES = (34, 67, 100)
_FULL_PERCENT = RAMP_PERCENTAGES[-1]
_STAGE = re.compile(r"([0-9]{1,2})=([0-9]{1,3})@([0-9]{1,12})", re.ASCII)


@dataclass(frozen=True)
class RampStage:
    """The share of its tenants that a new worker serves, in percent, and the start of the stage in seconds
    since 1970."""

    percent: int
    started_at: int


@dataclass(frozen=True)
class WorkerShares:
    """The share of its tenants that each worker serves.

    Workers with ordinals below `members` serve all of them. Those in `joining` are in a stage. Every other
    worker serves the first stage's share as soon as it is ready. For workers in `absent`, which were or are
    being stopped intentionally, a substitute serves their tenants while they are down; the last one to leave
    is at the end.
    """

    members: int
    joining: Mapping[int, RampStage] = field(default_factory=dict)
    absent: tuple[int, ...] = ()

    def percent(self, ordinal: int) -> int:
        """Return the share of its tenants that a worker serves, in percent."""
        if ordinal < self.members:
            return _FULL_PERCENT
        stage = self.joining.get(ordinal)
        return stage.percent if stage else RAMP_PERCENTAGES[0]

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations from which `read_shares` restores the shares."""
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
    """Return the shares in annotations; None if no worker has served tenants yet.

    Invalid values are ignored.
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
    """Return the weight on HAProxy's ring of each worker that does not serve all of its tenants.

    Workers that do not exist yet are included: when such a worker comes up, it starts with the first stage.
    """
    found = {ordinal: shares.percent(ordinal) for ordinal in range(MAX_REPLICAS)}
    return {ordinal: percent for ordinal, percent in found.items() if percent < _FULL_PERCENT}


@dataclass(frozen=True)
class Owner:
    """The worker that owns a tenant, and the substitute that serves the tenant while it is down; None: no
    substitute."""

    ordinal: int
    backup: int | None = None


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _rank_workers(tenant: str, count: int) -> list[int]:
    """Return the workers in the order of preference of a tenant (rendezvous hashing): one worker more or less
    only moves the tenants that it gets or had."""
    return sorted(range(count), key=lambda ordinal: _hash(f"{tenant}/{ordinal}"), reverse=True)


def owner(tenant: str, placement: int | None, count: int, shares: WorkerShares) -> Owner:
    """Return a tenant's owner among `count` workers, and the owner's substitute."""
    ranked = _rank_workers(tenant, count)
    # In a stage, the same tenants move, whichever worker it is.
    place = int.from_bytes(_hash(f"{tenant}/stage")[:8]) * 100 >> 64
    taken = (ordinal for ordinal in ranked if place < shares.percent(ordinal))
    ordinal = placement if placement is not None else next(taken, ranked[0])
    if shares.percent(ordinal) == _FULL_PERCENT and ordinal not in shares.absent:
        return Owner(ordinal)
    absent = {away: position for position, away in enumerate(shares.absent, start=1)}
    others = [other for other in ranked if other != ordinal]
    # A worker that serves all of its tenants and is not leaving is up. Among the others, the earliest to
    # return is the best.
    others.sort(key=lambda other: (shares.percent(other) < _FULL_PERCENT, absent.get(other, 0)))
    return Owner(ordinal, others[0] if others else None)


def plans_with_shared_limits(gateway: Gateway) -> tuple[str, ...]:
    """Return the plans whose limits the GatewayTenants of one namespace share."""
    return tuple(sorted(plan.name for plan in gateway.spec.plans if plan.shared_limits is not None))


def placement_group(tenant: str, plan: str) -> str:
    """Return the hash input for the worker of a GatewayTenant that shares its plan's limits. All tenants that
    share them have the same one, so that one worker counts all of them. No name contains a `_`."""
    return f"{tenant.partition('/')[0]}_{plan}"


def owners(gateway: Gateway, count: int, shares: WorkerShares) -> dict[str, Owner]:
    """Return the worker of each tenant that is not left to HAProxy's ring, among `count` workers.

    Substitutes are only needed if the affinity is required; otherwise the ring selects another worker.
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
