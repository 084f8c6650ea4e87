"""Shards of tenants in a folder, in the form in which the operator writes them and the kubelet mounts them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

SHARDS = 32


def digest_of(key: str) -> str:
    """The SHA-256 of a key in hexadecimal."""
    return hashlib.sha256(key.encode()).hexdigest()


def shard_of(digest: str) -> int:
    """The shard of a digest; any rule would do."""
    return int(digest[:2], 16) >> 3


@dataclass
class TenantShards:
    """Keys with their tenants, and tenants with their plans and owning workers."""

    folder: Path
    keys: dict[str, str] = field(default_factory=dict)
    """Tenants by the digests of their keys."""
    plans: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def write(self, numbers: range | list[int] = range(SHARDS)) -> None:
        """Replaces the files of some shards, each atomically."""
        chosen = set(numbers)
        self._renew("keys", chosen, self.keys, lambda digest: digest, " ci")
        self._renew("tenants", chosen, self.plans, digest_of)
        self._renew("owners", chosen, self.owners, digest_of)

    def add(self, tenant: str, plan: str, *keys: str) -> None:
        """Gives a tenant a plan and keys, and replaces the affected shards."""
        self.plans[tenant] = plan
        self.keys |= {digest_of(key): tenant for key in keys}
        self.write([shard_of(digest_of(text)) for text in (tenant, *keys)])

    def remove_key(self, key: str) -> None:
        """Removes a key, and replaces its shard."""
        del self.keys[digest_of(key)]
        self.write([shard_of(digest_of(key))])

    def _renew(
        self,
        name: str,
        numbers: set[int],
        entries: dict[str, str],
        digest: Callable[[str], str],
        ending: str = "",
    ) -> None:
        lines: dict[int, list[str]] = {number: [] for number in numbers}
        for key, value in entries.items():
            if (number := shard_of(digest(key))) in lines:
                lines[number].append(f"{key} {value}{ending}\n")
        for number, of_shard in lines.items():
            folder = self.folder / f"{number:02}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "new").write_text("".join(sorted(of_shard)))
            (folder / "new").replace(folder / name)
