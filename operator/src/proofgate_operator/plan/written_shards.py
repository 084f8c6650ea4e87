"""The content of the written shards of tenants: all that a new operator process knows of unreadable
tenants."""

from dataclasses import dataclass, field

from proofgate_operator.build.naming import Manifest
from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.build.tenant_shards import KEYS, TENANTS
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.tenant_registry import AttachedTenant


@dataclass(repr=False)
class WrittenShards:
    """Tenants in written shards: their plans and keys by `<namespace>/<name>`, and the shard numbers of names
    and key digests."""

    plans: dict[str, str] = field(default_factory=dict)
    keys: dict[str, list[KeyDigest]] = field(default_factory=dict)
    name_shards: dict[str, int] = field(default_factory=dict)
    key_shards: dict[str, int] = field(default_factory=dict)

    def add(self, shard: int, secret: Manifest) -> None:
        """Add the content of one shard."""
        for line in (entry(secret, TENANTS) or "").splitlines():
            tenant, _, plan = line.partition(" ")
            self.plans[tenant] = plan
            self.name_shards[tenant] = shard
        for line in (entry(secret, KEYS) or "").splitlines():
            words = line.split()
            if len(words) < 3:
                continue
            digest, tenant, name, *more = words
            ends = (word.removeprefix("not_after=") for word in more if word.startswith("not_after="))
            end = next((end for end in ends if end.isdecimal()), None)
            key = KeyDigest(digest, time_of(int(end)) if end else None, name)
            self.keys.setdefault(tenant, []).append(key)
            self.key_shards[digest] = shard

    @property
    def holders(self) -> dict[str, str]:
        """The tenants by the digests of their keys."""
        return {key.digest: tenant for tenant, keys in self.keys.items() for key in keys}

    def attached_tenant(self, tenant: str) -> AttachedTenant:
        """Return a tenant from the shards, without its creation time, which the shards do not contain."""
        keys = sorted(self.keys.get(tenant, ()), key=lambda key: key.digest)
        return AttachedTenant(tenant, self.plans[tenant], "", tuple(keys))

    def digests(self, tenant: str) -> dict[str, str]:
        """Return the digests of a tenant's keys by their names."""
        return {key.name: key.digest for key in self.keys.get(tenant, ())}
