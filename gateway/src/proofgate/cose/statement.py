"""Tree heads as SCITT signed statements (RFC 9943), and the command `statement` that creates them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from proofgate_schema.counts import format_count

from proofgate.cose.note_key import NoteKey
from proofgate.cose.receipt import is_ledger_key
from proofgate.cose.sign1 import CONTENT_TYPE, sign1
from proofgate.evidence import EvidenceError, read_text, read_verifying_key
from proofgate.exit_codes import EXIT_INVALID_EVIDENCE, EXIT_OK, fail
from proofgate.receipts.verified_receipt import Checkpoint, ContradictedError, read_checkpoint

_NOTE = "text/plain;charset=utf-8"


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Writes a COSE_Sign1 message (RFC 9943) with the checkpoint as its payload, for a "
        "transparency service or any tool that reads COSE. The checkpoint is verified first. You "
        "sign the message. The ledger's own signature stays in the payload.",
    )
    parser.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT", help="the file with the signed checkpoint"
    )
    parser.add_argument(
        "--key",
        required=True,
        metavar="VKEY",
        help="the verifying key of the checkpoint's ledger or auditor, or a file that contains it",
    )
    parser.add_argument(
        "--signing-key", type=Path, required=True, metavar="FILE", help="the key that signs the statement"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the output file (default: CHECKPOINT.cose)")


def run(options: argparse.Namespace) -> int:
    """Verifies a checkpoint, signs a statement about it, and prints the issuer of the statement."""
    vkey, key = read_verifying_key(options.key), NoteKey.read(options.signing_key)
    try:
        checkpoint = read_checkpoint(read_text(options.checkpoint), vkey)
    except ContradictedError as error:
        return fail(f"not verified: {error}", EXIT_INVALID_EVIDENCE)
    own = is_ledger_key(key, vkey)
    out = options.out or options.checkpoint.with_name(f"{options.checkpoint.name}.cose")
    try:
        out.write_bytes(build_statement(checkpoint, key))
    except OSError as error:
        raise EvidenceError(f"{out} cannot be written: {error.strerror}") from None
    print(f"wrote {out}")
    held = vkey.split("+", 1)[0]
    entries = format_count(checkpoint.size, "entry")
    print(f"verified: {checkpoint.origin} with {entries}, under the key of {held}")
    whose = f"a key of {held}" if own else f"not a key of {held}; the signature of {held} is in the payload"
    print(f"signed by: {key.name} (key {key.id}), {whose}")
    return EXIT_OK


def build_statement(checkpoint: Checkpoint, key: NoteKey) -> bytes:
    """Returns the statement about a verified checkpoint. The note is the payload, the log's origin the
    subject.

    Raises EvidenceError.
    """
    return sign1(key, checkpoint.origin, {CONTENT_TYPE: _NOTE}, checkpoint.note.encode())
