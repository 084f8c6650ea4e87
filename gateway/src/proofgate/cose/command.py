"""The option `--format cose` of the command `receipt`."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from proofgate.cose.note_key import NoteKey
from proofgate.cose.receipt import build_cose_receipts, is_ledger_key
from proofgate.evidence import EvidenceError, read_verifying_key
from proofgate.receipts.verified_receipt import Receipt, with_successions

_KIND = re.compile(r"[a-z0-9_]{1,32}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the command."""
    parser.add_argument(
        "--format",
        choices=["json", "cose"],
        default="json",
        help="json: the gateway's receipt; cose: also a COSE receipt (RFC 9942) for each record, which "
        "you sign (default: json)",
    )
    parser.add_argument(
        "--key",
        metavar="VKEY",
        help="with cose: the ledger's verifying key, or a file that contains it; the receipt is "
        "verified with this key first",
    )
    parser.add_argument(
        "--signing-key", type=Path, metavar="FILE", help="with cose: the key that signs the COSE receipts"
    )


def argument_error(options: argparse.Namespace) -> str | None:
    """Why the arguments contradict each other; None if they do not."""
    if options.format == "cose" and (options.key is None or options.signing_key is None):
        return (
            "--format cose needs --key and --signing-key: --key verifies the receipt, and "
            "--signing-key signs the COSE receipts"
        )
    if options.format == "json" and (options.key is not None or options.signing_key is not None):
        return "--key and --signing-key need --format cose; to verify a receipt, use proofgate verify"
    return None


def write(receipt: Receipt, path: Path, options: argparse.Namespace) -> list[str]:
    """Writes `<id>.<kind>.json` and `<id>.<kind>.cose` beside the receipt's file for each record.

    The name of a second record of a kind is `<id>.<kind>-2`. Returns the lines to print. Raises
    ContradictedError, EvidenceError.
    """
    vkey, key = read_verifying_key(options.key), NoteKey.read(options.signing_key)
    lines, seen = [], Counter[str]()
    stem = path.name.removesuffix(".json").removesuffix(".receipt")
    for made in build_cose_receipts(receipt, vkey, key):
        if not _KIND.fullmatch(made.kind):
            # The kind becomes part of a file's name.
            raise EvidenceError("a record of the receipt has an invalid kind")
        seen[made.kind] += 1
        number = f"-{seen[made.kind]}" if seen[made.kind] > 1 else ""
        name = f"{stem}.{made.kind}{number}"
        for suffix, content in (("json", made.record), ("cose", made.message)):
            out = path.with_name(f"{name}.{suffix}")
            try:
                out.write_bytes(content)
            except OSError as error:
                raise EvidenceError(f"{out} cannot be written: {error.strerror}") from None
            lines.append(f"wrote {out}")
    ledger = vkey.split("+", 1)[0]
    lines.append(f"verified: the receipt, under the key of {ledger}")
    if is_ledger_key(key, with_successions(receipt, vkey)):
        lines.append(f"signed by: {key.name} (key {key.id}), a key of the ledger")
    else:
        lines += [
            f"signed by: {key.name} (key {key.id}), not a key of the ledger",
            f"A verifier of the COSE receipts relies on {key.name}. The ledger's signature is in {path}.",
        ]
    return lines
