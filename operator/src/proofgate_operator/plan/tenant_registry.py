"""The tenants attached to one gateway, and the holder of each key: the source of the written shards.

The registry is kept between reconciles, so that a change only costs the work for the changed tenants. If two
tenants list the same key, its current holder keeps it; a new key goes to the tenant whose object is older. If
capacity is short, existing entries stay, and one namespace gets at most a quarter of it.
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

#: Maximum bytes of keys in one shard: with its tenants and their owners, it must fit into a Secret of a
#: mebibyte.
MAX_KEY_BYTES = 640 << 10
#: Maximum bytes of tenants in one shard. A line of owners is never longer than a line of tenants.
MAX_TENANT_BYTES = 176 << 10
#: Maximum bytes of a tenant's line, including the substitute of its owner.
_MAX_OWNER_LINE = 256


@dataclass(frozen=True, repr=False)
class AttachedTenant:
    """A tenant that the gateway accepted: its name, its plan, the creation time of its object, and its
    keys."""

    name: str
    plan: str
    created_at: str
    keys: tuple[KeyDigest, ...]


class TenantRegistry:
    """The tenants of one gateway.

    `holders` are the former holders of keys by digest, `names` all former tenants, and `key_shards` and
    `name_shards` their former shards. Former tenants keep their keys only if the first call of
    `update_tenants` includes them, so that call must include all tenants.
    """

    def __init__(
        self,
        holders: Mapping[str, str],
        names: Iterable[str] = (),
        key_shards: Mapping[str, int] = MappingProxyType({}),
        name_shards: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._holders = dict(holders)
        #: Names and keys from before the first `update_tenants`.
        self._before, self._unsettled = frozenset(names), set(holders)
        self._key_places, self._name_places = ShardAllocation(key_shards), ShardAllocation(name_shards)
        self._tenants: dict[str, AttachedTenant] = {}
        self._claims: dict[str, dict[str, KeyDigest]] = {}
        self._reserved: Set[str] = frozenset()
        self._key_lines: list[dict[str, str]] = [{} for _ in range(SHARDS)]
        self._names: list[set[str]] = [set() for _ in range(SHARDS)]
        self._digests: dict[int, str] = {}
        #: Tenants whose accepted keys changed since this set was last cleared, without those that were
        #: updated or removed themselves.
        self.touched: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tenants

    @property
    def reserved(self) -> Set[str]:
        """Digests of keys in the gateway's own list, which no tenant here can get."""
        return self._reserved

    @property
    def names(self) -> frozenset[str]:
        """The names of all tenants."""
        return frozenset(self._tenants)

    @property
    def key_count(self) -> int:
        """Number of accepted keys."""
        return sum(map(len, self._key_lines))

    def update_tenants(self, *tenants: AttachedTenant) -> set[str]:
        """Update or add tenants, all in one call; return the names of those without capacity."""
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
        # An unclaimed entry counts as new when it is claimed again.
        self._key_places.discard_previous()
        self._name_places.discard_previous()
        return refused

    def _add_tenant(self, tenant: AttachedTenant, digests: set[str]) -> bool:
        """Add a tenant and its claims if there is capacity, and add the affected digests to `digests`."""
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
        """Remove a tenant that was deleted or is no longer accepted."""
        tenant = self._tenants.pop(name, None)
        if tenant is None:
            return
        shard = self._name_places.remove(name)
        assert shard is not None  # every registered tenant has a shard
        self._names[shard].discard(name)
        self._digests.pop(shard, None)
        for key in tenant.keys:
            self._remove_claim(key.digest, name)
            self._assign_key(key.digest)

    def reserve(self, digests: Set[str]) -> None:
        """Set the keys of the gateway's own list of tenants: no other tenant gets one of them."""
        changed = self._reserved ^ digests
        self._reserved = digests
        for digest in changed & self._claims.keys():
            self._assign_key(digest)

    def missing_keys(self, name: str) -> tuple[KeyDigest, ...]:
        """Return a tenant's keys that were not accepted, because another tenant has them or capacity is
        missing."""
        tenant = self._tenants.get(name)
        return tuple(key for key in tenant.keys if self._holders.get(key.digest) != name) if tenant else ()

    def is_over_share(self, tenant: str) -> bool:
        """Return whether a tenant gets no further key because its namespace has used its share."""
        return not self._key_places.is_within_share(tenant, _MAX_OWNER_LINE, MAX_KEY_BYTES)

    def shards_of(self, tenant: str, keys: Iterable[KeyDigest]) -> set[int]:
        """Return the shards that contain a tenant and its accepted keys."""
        found = {self._name_places.get(tenant)}
        found |= {self._key_places.get(key.digest) for key in keys if self.holder(key.digest) == tenant}
        return {shard for shard in found if shard is not None}

    def holder(self, digest: str) -> str | None:
        """Return the tenant that holds a key; None if there is none."""
        return self._holders.get(digest)

    def files(self, shard: int, owner_of: Callable[[str, str], str | None]) -> dict[str, str]:
        """Return the files of a shard; `owner_of` returns the entry of a tenant and its plan in the map of
        owners, None if there is none."""
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
        """The shards in the order of writing. An entry that moves goes to an emptier shard, and is written
        there before it is removed from its old shard."""
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
        """Assign a key to its winner only."""
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
        """Return the tenant that should hold a key; None if no tenant claims it."""
        claims, holder = self._claims.get(digest, {}), self._holders.get(digest)
        return holder if holder in claims else min(claims, key=self._creation_order, default=None)

    def _key_priority(self, digest: str) -> tuple[bool, tuple[str, str], str]:
        """Return the sort key by which keys get capacity: current holders first, then keys of older
        tenants."""
        winner = self._winner(digest)
        return (
            winner != self._holders.get(digest),
            self._creation_order(winner) if winner else ("", ""),
            digest,
        )

    def _creation_order(self, name: str) -> tuple[str, str]:
        return self._tenants[name].created_at, name
