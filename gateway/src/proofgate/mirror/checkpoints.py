"""The objects of a mirror besides logs: checkpoints, the ledger's name, and statements of key succession."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from proofgate import _core
from proofgate.key_statements import STATEMENTS, chain_statements
from proofgate.mirror import aggregate
from proofgate.mirror.target import MirrorError, MirrorObject


def checkpoint_objects(auditor: _core.Auditor, ledger: Path, size: int, note: str) -> list[MirrorObject]:
    """Returns the current objects. `note` is the checkpoint of the aggregate log with `size` entries. Raises
    MirrorError."""
    _, ledger_key = auditor.verifying_keys()
    ledger_name = ledger_key.split("+", 1)[0]
    found = [MirrorObject.from_bytes("ledger/ledger-name", f"{ledger_name}\n".encode())]
    if size:
        found.append(
            MirrorObject.from_bytes(f"aggregate/checkpoints/{_checkpoint_name(size, note)}", note.encode())
        )
    try:
        statements = chain_statements(ledger, ledger_key)
    except OSError as error:
        raise MirrorError("mirror_source", f"the ledger cannot be read: {error.strerror}") from None
    for name, text in statements:
        found.append(MirrorObject.from_bytes(f"ledger/{STATEMENTS}/{name}", text.encode()))
    for head in json.loads(auditor.heads()):
        place = aggregate.parse_origin(head["origin"], ledger_name)
        if place is not None:
            found.append(log_checkpoint_object("/".join(place), head["size"], head["checkpoint"]))
    return found


def log_checkpoint_object(place: str, size: int, note: str) -> MirrorObject:
    """Returns the object of a checkpoint of the log at `<shard>/<incarnation>`."""
    return MirrorObject.from_bytes(f"checkpoints/{place}/{_checkpoint_name(size, note)}", note.encode())


def _checkpoint_name(size: int, note: str) -> str:
    """The name of a note's object. Several notes of one size can exist, with different cosignatures."""
    return f"{size:020d}-{hashlib.sha256(note.encode()).hexdigest()[:16]}"
