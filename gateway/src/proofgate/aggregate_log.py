"""The auditor's log: entries in bundles, checked against the signed checkpoint.

The entries are read from the auditor's state or from its port. Neither source is trusted before the entries
match the root that the auditor signed.
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
    """The entries do not match what the auditor signed."""


class LogSource(Protocol):
    """A source of the auditor's log."""

    def checkpoint(self) -> bytes:
        """The newest published checkpoint."""

    def bundle(self, number: int, count: int) -> bytes:
        """The bundle of this number, with at least `count` entries."""


@dataclass(frozen=True)
class StateFiles:
    """The log files in an auditor's state directory, or in a copy of it. Reading raises OSError."""

    state: Path

    def __str__(self) -> str:
        return str(self.state)

    def checkpoint(self) -> bytes:
        """The newest checkpoint."""
        return (self.state / "checkpoint").read_bytes()

    def bundle(self, number: int, count: int) -> bytes:
        """The bundle of this number, with at least `count` entries. The auditor may have replaced it by a
        wider one."""
        path = self.state / tile_path("entries", number)
        folder = path.with_name(f"{path.name}.p")
        names = [part.name for part in folder.iterdir()] if folder.is_dir() else []
        parted = [int(name) for name in names if name.isascii() and name.isdigit()]
        for width in sorted(width for width in parted if width >= count):
            return (folder / str(width)).read_bytes()
        return path.read_bytes()


@dataclass
class LoggedStatements:
    """The retention job's signed statements in the part of the auditor's log that was read: the SHA-256 of
    each in hexadecimal, and the tree over the entries of this part."""

    origin: str
    tree: _core.Tree = field(default_factory=_core.Tree)
    digests: set[str] = field(default_factory=set)


def entries(source: LogSource, size: int, first: int = 0) -> Iterator[bytes]:
    """Yields the entries from `first` to `size`, without `size`. Raises AggregateLogError and the source's
    errors."""
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
    """Reads all statements of the retention job in the auditor's log. `key` is the auditor's verifying key.

    Reading continues after the entries of `before`, or starts at the first entry if `before` is of another
    log. The entries are checked against the checkpoint. Raises AggregateLogError and the source's errors.
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
    """The SHA-256 of the statement that an entry contains; None if it contains none."""
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
    """Returns the digests that `read_log_statements` finds in an auditor's state directory. Raises OSError
    and AggregateLogError."""
    return read_log_statements(StateFiles(state), key).digests
