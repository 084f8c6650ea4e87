"""The auditor's log as its state keeps it: entries in bundles of tiles, compared with what was signed."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from proofgate import _core
from proofgate.mirror.aggregate import WIDTH, path_of, split


class AggregateLogError(Exception):
    """The entries are not those that the auditor signed."""


def entries(state: Path, size: int) -> Iterator[bytes]:
    """The first `size` entries in an auditor's state. Raises OSError and AggregateLogError."""
    for number in range(-(-size // WIDTH)):
        count = min(WIDTH, size - number * WIDTH)
        found = list(split(_bundle(state, number, count)))
        if len(found) < count:
            raise AggregateLogError(f"bundle {number} of the auditor's log is cut off")
        yield from found[:count]


def _bundle(state: Path, number: int, count: int) -> bytes:
    """A bundle of at least so many entries: the auditor may have put a wider one in its place."""
    path = state / path_of("entries", number)
    folder = path.with_name(f"{path.name}.p")
    names = [part.name for part in folder.iterdir()] if folder.is_dir() else []
    parted = [int(name) for name in names if name.isascii() and name.isdigit()]
    for width in sorted(width for width in parted if width >= count):
        return (folder / str(width)).read_bytes()
    return path.read_bytes()


def statements(state: Path, key: str) -> set[str]:
    """The SHA-256 of everything that a keeper signed and that is in the auditor's log, by its verifying key.

    The log is read whole, and leads to what the auditor signed. Raises OSError and AggregateLogError.
    """
    try:
        note = (state / "checkpoint").read_text(encoding="utf-8")
        signed = json.loads(_core.verify_checkpoint(note, key))
    except (_core.ProofError, UnicodeDecodeError) as error:
        raise AggregateLogError(f"the checkpoint in {state} is not the auditor's: {error}") from None
    if signed["origin"] != key.partition("+")[0]:
        raise AggregateLogError(f"the checkpoint in {state} is of {signed['origin']}")
    tree, found = _core.Tree(), set[str]()
    for entry in entries(state, signed["size"]):
        tree.push(entry)
        try:
            told = json.loads(entry)
            if told["kind"] == "statement":
                found.add(str(told["statement"]["sha256"]))
            elif told["kind"] == "removed":
                found.add(hashlib.sha256(str(told["tombstone"]).encode()).hexdigest())
        except (ValueError, KeyError, TypeError):
            raise AggregateLogError("an entry of the auditor's log is none") from None
    if tree.root != base64.b64decode(signed["root"]):
        raise AggregateLogError("the entries of the auditor's log do not lead to the root that it signed")
    return found
