"""Which shard each line stands in: where it stood before, and a new one where there is most room.

A tenant chooses its name, and by `sha256` the digests of its keys, so neither may decide: whoever knew the
rule could fill one shard for all others. What was written tells where a line stands, so an operator that
starts moves none.
"""

from collections import Counter
from collections.abc import Mapping

from proofgate_operator.build.tenant_shards import SHARDS

#: Namespaces that there is room for, however much each asks for.
MIN_NAMESPACES = 4


def namespace_of(tenant: str) -> str:
    """Return the namespace of a tenant, by its name `<namespace>/<name>`."""
    return tenant.partition("/")[0]


class ShardAllocation:
    """Where lines of one kind stand; each takes `size` bytes of the `most` of its shard.

    `before` are the shards of the lines that were written, which stand there again while there is room.
    """

    def __init__(self, before: Mapping[str, int]) -> None:
        self._before = dict(before)
        self._placed: dict[str, tuple[int, str, int]] = {}
        self._bytes = [0] * SHARDS
        self._of: Counter[str] = Counter()

    def used_bytes(self, shard: int) -> int:
        """Return how many bytes of a shard are taken."""
        return self._bytes[shard]

    def get(self, line: str) -> int | None:
        """Return the shard of a line; None if it stands in none."""
        return self._placed[line][0] if line in self._placed else None

    def allocate(self, line: str, tenant: str, size: int, most: int, *, had: bool) -> int | None:
        """Return the shard that a line of a tenant stands in from now on; None if there is no room.

        One namespace has a share of all room. A line that it `had` stays, whatever the share.
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
        """Return the shard that a line stood in until now; None if in none."""
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
        """Have a line that is placed next stand in a shard, if there is room."""
        self._before[line] = shard

    def discard_previous(self) -> None:
        """Forget where lines stood that are not placed again."""
        self._before.clear()

    def is_within_share(self, tenant: str, size: int, most: int) -> bool:
        """Return whether so much more is within the share of a tenant's namespace."""
        return self._of[namespace_of(tenant)] + size <= SHARDS * most // MIN_NAMESPACES
