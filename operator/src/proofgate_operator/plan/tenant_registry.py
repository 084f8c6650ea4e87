"""The tenants that attached to one gateway, and who holds which key: what the shards are written from.

It is kept from reconcile to reconcile, so that a change costs what the tenants have that changed, and no
more. Of two tenants that list one key, the one that holds it keeps it; of two that are new to it, the one
whose object is older gets it. Where room is short, who is in stays in, and one
namespace has at most a quarter of it.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.build.tenant_shards import (
    KEYS,
    OWNERS,
    SHARDS,
    TENANTS,
    key_line,
    shard_digest,
)
from proofgate_operator.plan.shard_allocation import ShardAllocation

#: Bytes of keys in one shard: with its tenants and their owners, it has to fit into a Secret of a mebibyte.
MAX_KEY_BYTES = 640 << 10
#: Bytes of tenants in one shard. A line of owners is no longer than one of these.
MAX_TENANT_BYTES = 176 << 10
#: What a tenant's line may take, with whatever stands in for its owner.
_MAX_OWNER_LINE = 256


@dataclass(frozen=True, repr=False)
class AttachedTenant:
    """A tenant that the gateway accepted: its name, its plan, when its object was made, and its keys."""

    name: str
    plan: str
    created_at: str
    keys: tuple[KeyDigest, ...]


class TenantRegistry:
    """The tenants of one gateway.

    `holders` are tenants by the digests of the keys that they had before, `names` all that were in, and
    `key_shards` and `name_shards` where both stand. What they had is theirs if they are among the first that
    are put: so all have to be put at once then.
    """

    def __init__(
        self,
        holders: Mapping[str, str],
        names: Iterable[str] = (),
        key_shards: Mapping[str, int] = MappingProxyType({}),
        name_shards: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._holders = dict(holders)
        #: Names and keys of before the first were put.
        self._before, self._unsettled = frozenset(names), set(holders)
        self._key_places, self._name_places = ShardAllocation(key_shards), ShardAllocation(name_shards)
        self._tenants: dict[str, AttachedTenant] = {}
        self._claims: dict[str, dict[str, KeyDigest]] = {}
        self._reserved: Set[str] = frozenset()
        self._key_lines: list[dict[str, str]] = [{} for _ in range(SHARDS)]
        self._names: list[set[str]] = [set() for _ in range(SHARDS)]
        self._digests: dict[int, str] = {}
        #: Tenants that have other keys than when it was last emptied, besides those that were put or dropped.
        self.touched: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tenants

    @property
    def reserved(self) -> Set[str]:
        """Digests of keys that nobody here can have: the gateway's own list has them."""
        return self._reserved

    @property
    def names(self) -> frozenset[str]:
        """The names of the tenants."""
        return frozenset(self._tenants)

    @property
    def key_count(self) -> int:
        """Number of accepted keys."""
        return sum(map(len, self._key_lines))

    def update_tenants(self, *tenants: AttachedTenant) -> set[str]:
        """Take in tenants as they are now, all at once; return those that there is no room for."""
        refused: set[str] = set()
        digests, self._unsettled = self._unsettled, set()
        for tenant in sorted(
            tenants, key=lambda new: (new.name not in self._before, new.created_at, new.name)
        ):
            if not self._add_tenant(tenant, digests):
                refused.add(tenant.name)
        self._before = frozenset()
        for digest in sorted(digests, key=self._key_priority):
            self._assign_key(digest)
        # What nobody has now is placed as new when it comes again.
        self._key_places.discard_previous()
        self._name_places.discard_previous()
        return refused

    def _add_tenant(self, tenant: AttachedTenant, digests: set[str]) -> bool:
        """Note a tenant, if there is room for it, what it claims, and the digests that are to be settled."""
        before = self._tenants.get(tenant.name)
        if before == tenant and self._same_names(before, tenant):
            return True
        shard = self._name_places.get(tenant.name)
        if shard is None:
            had = tenant.name in self._before
            shard = self._name_places.allocate(
                tenant.name, tenant.name, _MAX_OWNER_LINE, MAX_TENANT_BYTES, had=had
            )
            if shard is None:
                return False
        self._tenants[tenant.name] = tenant
        self._names[shard].add(tenant.name)
        if before is None or before.plan != tenant.plan:
            self._digests.pop(shard, None)
        old = {key.digest for key in before.keys} if before else set()
        new = {key.digest: key for key in tenant.keys}
        for digest in old - new.keys():
            self._remove_claim(digest, tenant.name)
        for digest, key in new.items():
            self._claims.setdefault(digest, {})[tenant.name] = key
        digests |= old | new.keys()
        return True

    def remove(self, name: str) -> None:
        """Take in that a tenant is gone, or no longer accepted."""
        tenant = self._tenants.pop(name, None)
        if tenant is None:
            return
        shard = self._name_places.remove(name)
        assert shard is not None  # whoever is in the book stands in a shard
        self._names[shard].discard(name)
        self._digests.pop(shard, None)
        for key in tenant.keys:
            self._remove_claim(key.digest, name)
            self._assign_key(key.digest)

    def reserve(self, digests: Set[str]) -> None:
        """Take in the keys of the gateway's own list of tenants: nobody else gets one of them."""
        changed = self._reserved ^ digests
        self._reserved = digests
        for digest in changed & self._claims.keys():
            self._assign_key(digest)

    def missing_keys(self, name: str) -> tuple[KeyDigest, ...]:
        """Return the keys of a tenant that it did not get: another one has them, or there is no room."""
        tenant = self._tenants.get(name)
        return tuple(key for key in tenant.keys if self._holders.get(key.digest) != name) if tenant else ()

    def is_over_share(self, tenant: str) -> bool:
        """Return whether no key of a tenant finds room because its namespace has its share."""
        return not self._key_places.is_within_share(tenant, _MAX_OWNER_LINE, MAX_KEY_BYTES)

    def shards_of(self, tenant: str, keys: Iterable[KeyDigest]) -> set[int]:
        """Return the shards that a tenant and those of its keys that it got are in."""
        found = {self._name_places.get(tenant)}
        found |= {self._key_places.get(key.digest) for key in keys if self.holder(key.digest) == tenant}
        return {shard for shard in found if shard is not None}

    def holder(self, digest: str) -> str | None:
        """Return who has a key; None if nobody has."""
        return self._holders.get(digest)

    def files(self, shard: int, owner_of: Callable[[str, str], str | None]) -> dict[str, str]:
        """Return the files of a shard; `owner_of` tells what the map of owners has of a tenant and its plan,
        if it has anything."""
        lines = self._key_lines[shard]
        names = sorted(self._names[shard])
        owners = ((name, owner_of(name, self._tenants[name].plan)) for name in names)
        return {
            KEYS: "".join(lines[digest] for digest in sorted(lines)),
            TENANTS: "".join(f"{name} {self._tenants[name].plan}\n" for name in names),
            OWNERS: "".join(f"{name} {owner}\n" for name, owner in owners if owner is not None),
        }

    @property
    def shards_in_write_order(self) -> list[int]:
        """The shards in the order in which to write them: what moves, moves to an emptier one, and is written
        there before it is taken out of the other."""
        return sorted(range(SHARDS), key=self._key_places.used_bytes)

    def digest(self, shard: int) -> str:
        """Return a digest of a shard's keys and tenants."""
        if shard not in self._digests:
            made = self.files(shard, lambda *_: None)
            self._digests[shard] = shard_digest(made[KEYS], made[TENANTS])
        return self._digests[shard]

    @staticmethod
    def _same_names(before: AttachedTenant, now: AttachedTenant) -> bool:
        return [key.name for key in before.keys] == [key.name for key in now.keys]

    def _remove_claim(self, digest: str, name: str) -> None:
        claims = self._claims.get(digest, {})
        claims.pop(name, None)
        if not claims:
            self._claims.pop(digest, None)

    def _assign_key(self, digest: str) -> None:
        """Give a key to the one that is to have it, and to nobody else."""
        before = self._key_places.remove(digest)
        line_before = None if before is None else self._key_lines[before].pop(digest)
        claims, winner = self._claims.get(digest, {}), self._winner(digest)
        holder = self._holders.pop(digest, None)
        shard, line = None, None
        if digest not in self._reserved and winner is not None:
            line = key_line(claims[winner], winner)
            if before is not None:
                self._key_places.reserve(digest, before)
            shard = self._key_places.allocate(digest, winner, len(line), MAX_KEY_BYTES, had=holder == winner)
            if shard is not None:
                self._key_lines[shard][digest] = line
                self._holders[digest] = winner
        if (shard, line) != (before, line_before):
            for changed in (shard, before):
                if changed is not None:
                    self._digests.pop(changed, None)
        self.touched |= claims.keys()

    def _winner(self, digest: str) -> str | None:
        """Return who is to have a key; None if nobody claims it."""
        claims, holder = self._claims.get(digest, {}), self._holders.get(digest)
        return holder if holder in claims else min(claims, key=self._creation_order, default=None)

    def _key_priority(self, digest: str) -> tuple[bool, tuple[str, str], str]:
        """Return what sorts keys by when they get room: those that have it, then those of older tenants."""
        winner = self._winner(digest)
        return (
            winner != self._holders.get(digest),
            self._creation_order(winner) if winner else ("", ""),
            digest,
        )

    def _creation_order(self, name: str) -> tuple[str, str]:
        return self._tenants[name].created_at, name
