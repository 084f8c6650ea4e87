"""HAProxy's hash ring: the worker that serves a tenant while all workers are up and no tenant is reassigned.

It matches HAProxy's configuration: `balance hash` of the tenant, `hash-type consistent sdbm avalanche`, a
weight of 100, and a server id that is the shard number plus one (HAProxy 2.6, `src/lb_chash.c`, `src/hash.c`,
`include/haproxy/tools.h`). A test compares it with HAProxy itself.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable

#: Number of a worker's points: `BE_WEIGHT_SCALE` for each unit of its weight.
POINTS_PER_WORKER = 16 * 100
#: Number of points that HAProxy reserves for each server id: `SRV_EWGHT_RANGE`.
_POINTS_PER_SERVER_ID = 256 * 16
#: Number of positions on the ring.
RING_SIZE = 1 << 32
_MASK = RING_SIZE - 1


def ring_position(tenant: str) -> int:
    """The position of a tenant on the ring, from 0 to below `RING_SIZE`."""
    found = 0
    for byte in tenant.encode():
        found = (byte + (found << 6) + (found << 16) - found) & _MASK
    return _avalanche(found)


def required_owner(tenant: str, shards: Iterable[int]) -> int | None:
    """The shard that owns a tenant if the affinity is required. The map of owners, which the operator creates
    by rendezvous hashing, then takes precedence over the ring. None if there are no shards."""
    return max(shards, key=lambda shard: hashlib.sha256(f"{tenant}/{shard}".encode()).digest(), default=None)


class HashRing:
    """The hash ring of a set of workers, by shard number."""

    def __init__(self, shards: Iterable[int]) -> None:
        # HAProxy's tree keeps two points at the same position, in the order in which they were inserted.
        points = [
            (_avalanche((shard + 1) * _POINTS_PER_SERVER_ID + number), order, shard)
            for order, shard in enumerate(dict.fromkeys(shards))
            for number in range(POINTS_PER_WORKER)
        ]
        points.sort()
        self._places = [at for at, _, _ in points]
        self._shards = [shard for _, _, shard in points]

    def shard_for(self, tenant: str) -> int | None:
        """The shard whose point is nearest to a tenant's position; None on an empty ring."""
        if not self._places:
            return None
        at = ring_position(tenant)
        following = bisect_left(self._places, at) % len(self._places)
        before = following - 1
        behind, ahead = (at - self._places[before]) & _MASK, (self._places[following] - at) & _MASK
        return self._shards[before if behind <= ahead else following]


def _avalanche(value: int) -> int:
    """HAProxy's `full_hash`: one of Bob Jenkins' integer hashes, multiplied by a prime."""
    value = (value + 0x7ED55D16 + (value << 12)) & _MASK
    value = (value ^ 0xC761C23C ^ (value >> 19)) & _MASK
    value = (value + 0x165667B1 + (value << 5)) & _MASK
    value = ((value + 0xD3A2646C) ^ (value << 9)) & _MASK
    value = (value + 0xFD7046C5 + (value << 3)) & _MASK
    value = (value ^ 0xB55A4F09 ^ (value >> 16)) & _MASK
    return (value * 3221225473) & _MASK
