"""Reading of the aggregate log for a mirror: entries and complete tiles."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

#: Number of entries in a bundle and of hashes in a tile (c2sp.org/tlog-tiles).
TILE_WIDTH = 256
_INCARNATION = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_SHARD = re.compile(r"[0-9]{1,20}")


class TileSource(Protocol):
    """A source of a log's published tiles and bundles."""

    def read(self, path: str, /) -> bytes | None:
        """Returns the tile or bundle at a path of c2sp.org/tlog-tiles; None if it does not exist."""


@dataclass(frozen=True)
class EndedLog:
    """A log that has ended, according to an entry of the aggregate log."""

    index: int
    shard: str
    incarnation: str
    size: int
    checkpoint: str
    removed: bool

    @property
    def log_path(self) -> str:
        """The log's directory in a ledger."""
        return f"{self.shard}/{self.incarnation}"


def tile_path(level: str, number: int, width: int = TILE_WIDTH) -> str:
    """Returns the path of a tile, or of a bundle if `level` is `entries`."""
    parts = [f"{number % 1000:03d}"]
    while number := number // 1000:
        parts.insert(0, f"x{number % 1000:03d}")
    return f"tile/{level}/{'/'.join(parts)}" + (f".p/{width}" if width < TILE_WIDTH else "")


def parse_origin(origin: str, ledger: str) -> tuple[str, str] | None:
    """Parses shard and incarnation from an origin; None if the origin is not of a log of this ledger."""
    shard, _, incarnation = origin.removeprefix(f"{ledger}/").rpartition("/")
    if not origin.startswith(f"{ledger}/") or not _SHARD.fullmatch(shard):
        return None
    return (shard, incarnation) if _INCARNATION.fullmatch(incarnation) else None


def ended_logs(tiles: TileSource, ledger: str, first: int, size: int) -> Iterator[EndedLog]:
    """Yields the ended logs in the aggregate log's entries from `first` to `size`."""
    for number in range(first // TILE_WIDTH, -(-size // TILE_WIDTH)):
        bundle = tiles.read(tile_path("entries", number, min(TILE_WIDTH, size - number * TILE_WIDTH)))
        for index, entry in enumerate(split_bundle(bundle or b""), number * TILE_WIDTH):
            if index >= first and (log := _parse_entry(index, entry, ledger)) is not None:
                yield log


def split_bundle(bundle: bytes) -> Iterator[bytes]:
    """Yields the entries of a bundle. Each entry follows its length in two bytes."""
    at = 0
    while at < len(bundle):
        end = at + 2 + int.from_bytes(bundle[at : at + 2], "big")
        yield bundle[at + 2 : end]
        at = end


def _parse_entry(index: int, entry: bytes, ledger: str) -> EndedLog | None:
    # The entry is trusted: the auditor wrote and signed it, and verified it again at its start.
    told: dict[str, Any] = json.loads(entry)
    place = parse_origin(told["origin"], ledger)
    if told["kind"] not in ("end", "removed") or place is None:
        return None
    return EndedLog(index, *place, told["size"], told["checkpoint"], told["kind"] == "removed")


def full_tiles(before: int, size: int) -> Iterator[str]:
    """Yields the tiles and bundles that became complete while a log grew from one size to another."""
    for number in range(before // TILE_WIDTH, size // TILE_WIDTH):
        yield tile_path("entries", number)
    width, level = TILE_WIDTH, 0
    while size // width:
        for number in range(before // width, size // width):
            yield tile_path(str(level), number)
        width, level = width * TILE_WIDTH, level + 1
