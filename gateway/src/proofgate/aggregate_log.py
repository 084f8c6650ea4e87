"""The auditor's log: entries in bundles of tiles, compared with what was signed.

They are read where the auditor keeps them, or from its port; neither is believed before the entries lead to
the root that the auditor signed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from proofgate_schema.counts import format_count

from proofgate import _core
from proofgate.mirror.aggregate import TILE_WIDTH, split_bundle, tile_path


class AggregateLogError(Exception):
    """The entries are not those that the auditor signed."""


class LogSource(Protocol):
    """Where the auditor's log is read."""

    def checkpoint(self) -> bytes:
        """The newest checkpoint that is published."""

    def bundle(self, number: int, count: int) -> bytes:
        """A bundle of at least so many entries."""


@dataclass(frozen=True)
class StateFiles:
    """The files in an auditor's state, or in a copy of it. Reading raises OSError."""

    state: Path

    def __str__(self) -> str:
        return str(self.state)

    def checkpoint(self) -> bytes:
        """The newest checkpoint."""
        return (self.state / "checkpoint").read_bytes()

    def bundle(self, number: int, count: int) -> bytes:
        """A bundle of at least so many entries: the auditor may have put a wider one in its place."""
        path = self.state / tile_path("entries", number)
        folder = path.with_name(f"{path.name}.p")
        names = [part.name for part in folder.iterdir()] if folder.is_dir() else []
        parted = [int(name) for name in names if name.isascii() and name.isdigit()]
        for width in sorted(width for width in parted if width >= count):
            return (folder / str(width)).read_bytes()
        return path.read_bytes()


@dataclass
class LoggedStatements:
    """What the retention job signed and the auditor's log has, as far as the log was read: the SHA-256 of
    each, in hexadecimal, and the tree over the entries up to there."""

    origin: str
    tree: _core.Tree = field(default_factory=_core.Tree)
    digests: set[str] = field(default_factory=set)


def entries(source: LogSource, size: int, first: int = 0) -> Iterator[bytes]:
    """The entries from `first` on of the first `size`. Raises AggregateLogError, and as the source does."""
    numbers = range(first // TILE_WIDTH, -(-size // TILE_WIDTH)) if first < size else ()
    for number in numbers:
        count = min(TILE_WIDTH, size - number * TILE_WIDTH)
        found = list(split_bundle(source.bundle(number, count)))
        if len(found) < count:
            raise AggregateLogError(f"bundle {number} of the auditor's log is truncated")
        yield from found[max(0, first - number * TILE_WIDTH) : count]


def read_log_statements(
    source: LogSource, key: str, before: LoggedStatements | None = None
) -> LoggedStatements:
    """Everything that the retention job signed and that is in the auditor's log, by its verifying key.

    The log is read behind what was read before, and whole where that is of another log; it leads to what the
    auditor signed. Raises AggregateLogError, and as the source does.
    """
    try:
        signed = json.loads(_core.verify_checkpoint(source.checkpoint().decode(), key))
    except (_core.ProofError, UnicodeDecodeError) as error:
        raise AggregateLogError(
            f"the checkpoint of {source} cannot be verified with the auditor's key: {error}"
        ) from None
    origin, size = signed["origin"], signed["size"]
    if origin != key.partition("+")[0]:
        raise AggregateLogError(
            f"the checkpoint of {source} belongs to the log {origin}, not to the log of the auditor's key"
        )
    known = before if before is not None and before.origin == origin else LoggedStatements(origin)
    if size < known.tree.size:
        raise AggregateLogError(
            f"the auditor's log shrank from {format_count(known.tree.size, 'entry')} to {size}"
        )
    tree = _core.Tree(known.tree.size, known.tree.peaks)
    found = set(known.digests)
    for entry in entries(source, size, tree.size):
        tree.push(entry)
        if (digest := _statement_digest(entry)) is not None:
            found.add(digest)
    if tree.root != base64.b64decode(signed["root"]):
        raise AggregateLogError("the entries of the auditor's log do not match its signed root")
    return LoggedStatements(origin, tree, found)


def _statement_digest(entry: bytes) -> str | None:
    """The SHA-256 of the statement that an entry tells; None where it tells none."""
    try:
        told: dict[str, Any] = json.loads(entry)
        if told["kind"] == "statement":
            return str(told["statement"]["sha256"])
        if told["kind"] == "removed":
            return hashlib.sha256(str(told["tombstone"]).encode()).hexdigest()
    except (ValueError, KeyError, TypeError, RecursionError):
        raise AggregateLogError("an entry of the auditor's log is not valid") from None
    return None


def read_statements(state: Path, key: str) -> set[str]:
    """What `read_log_statements` finds in an auditor's state. Raises OSError and AggregateLogError."""
    return read_log_statements(StateFiles(state), key).digests
