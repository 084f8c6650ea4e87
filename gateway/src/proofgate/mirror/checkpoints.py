"""What a mirror gets beside logs: checkpoints, the ledger's name, and how its keys follow each other."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from proofgate import _core
from proofgate.key_statements import STATEMENTS, of_the_line
from proofgate.mirror import aggregate
from proofgate.mirror.target import MirrorError, Piece


def pieces(auditor: _core.Auditor, ledger: Path, size: int, note: str) -> list[Piece]:
    """What there is now; `note` is the checkpoint of the aggregate log of `size`. Raises MirrorError."""
    _, ledger_key = auditor.verifying_keys()
    ledger_name = ledger_key.split("+", 1)[0]
    found = [Piece.of("ledger/ledger-name", f"{ledger_name}\n".encode())]
    if size:
        found.append(Piece.of(f"aggregate/checkpoints/{_stamped(size, note)}", note.encode()))
    try:
        statements = of_the_line(ledger, ledger_key)
    except OSError as error:
        raise MirrorError("mirror_source", f"the ledger cannot be read: {error.strerror}") from None
    for name, text in statements:
        found.append(Piece.of(f"ledger/{STATEMENTS}/{name}", text.encode()))
    for head in json.loads(auditor.heads()):
        place = aggregate.place_of(head["origin"], ledger_name)
        if place is not None:
            found.append(of_log("/".join(place), head["size"], head["checkpoint"]))
    return found


def of_log(place: str, size: int, note: str) -> Piece:
    """A checkpoint of the log at `<shard>/<incarnation>`."""
    return Piece.of(f"checkpoints/{place}/{_stamped(size, note)}", note.encode())


def _stamped(size: int, note: str) -> str:
    """A name for a note: of one size there can be several, with more cosignatures than before."""
    return f"{size:020d}-{hashlib.sha256(note.encode()).hexdigest()[:16]}"
