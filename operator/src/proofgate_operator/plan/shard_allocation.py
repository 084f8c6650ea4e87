"""Assigns lines to shards: a line keeps its shard, and a new line goes into the shard with the most free
space.

A tenant chooses its name and, with `sha256` items, the digests of its keys, so neither may determine the
shard: a tenant that knows the rule could fill one shard for all others. The written shards show the
assignments, so a restarted operator moves no line.
"""

from collections import Counter
from collections.abc import Mapping

from proofgate_operator.build.tenant_shards import SHARDS

#: The number of namespaces that have capacity, however much each requests.
MIN_NAMESPACES = 4


def namespace_of(tenant: str) -> str:
    """Return the namespace of a tenant from its name `<namespace>/<name>`."""
    return tenant.partition("/")[0]


class ShardAllocation:
    """The assignment of lines of one kind to shards; each line takes `size` of the `most` bytes of its shard.

    `before` has the shards of the written lines, which get the same shard again while it has free space.
    """

    def __init__(self, before: Mapping[str, int]) -> None:
        self._before = dict(before)
        self._placed: dict[str, tuple[int, str, int]] = {}
        self._bytes = [0] * SHARDS
        self._of: Counter[str] = Counter()

    def used_bytes(self, shard: int) -> int:
        """Return the number of used bytes of a shard."""
        return self._bytes[shard]

    def get(self, line: str) -> int | None:
        """Return the shard of a line; None if it has none."""
        return self._placed[line][0] if line in self._placed else None

    def allocate(self, line: str, tenant: str, size: int, most: int, *, had: bool) -> int | None:
        """Assign a shard to a tenant's line and return it; None if there is no capacity.

        Each namespace may use only a share of the total capacity. A line that was already assigned (`had`)
        stays regardless of that share.
        """
        namespace = namespace_of(tenant)
        if not had and not self.is_within_share(tenant, size, most):
            return None
        shard = self._before.pop(line, None)
        if shard is None or self._bytes[shard] + size > most:
            shard = min(range(SHARDS), key=self._bytes.__getitem__)
        if self._bytes[shard] + size > most:
            return None
        self._placed[line] = (shard, namespace, size)
        self._bytes[shard] += size
        self._of[namespace] += size
        return shard

    def remove(self, line: str) -> int | None:
        """Remove a line, and return its former shard; None if it had none."""
        found = self._placed.pop(line, None)
        if found is None:
            return None
        shard, namespace, size = found
        self._bytes[shard] -= size
        self._of[namespace] -= size
        if not self._of[namespace]:
            del self._of[namespace]
        return shard

    def reserve(self, line: str, shard: int) -> None:
        """Prefer a shard for a line that is allocated later, if the shard has free space."""
        self._before[line] = shard

    def discard_previous(self) -> None:
        """Forget the shards of written lines that were not allocated again."""
        self._before.clear()

    def is_within_share(self, tenant: str, size: int, most: int) -> bool:
        """Return whether `size` more bytes are within the share of a tenant's namespace."""
        return self._of[namespace_of(tenant)] + size <= SHARDS * most // MIN_NAMESPACES
