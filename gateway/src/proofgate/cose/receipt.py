"""COSE receipts (RFC 9942) of the records of a verified receipt."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from proofgate import _core
from proofgate.cose.cbor import encode
from proofgate.cose.note_key import NoteKey
from proofgate.cose.sign1 import VERIFIABLE_DATA_PROOFS, VERIFIABLE_DATA_STRUCTURE, sign1
from proofgate.evidence import EvidenceError
from proofgate.receipts.verified_receipt import Receipt, verify, with_successions

_RFC9162_SHA256 = 1
_INCLUSION_LABEL = -1


@dataclass(frozen=True)
class CoseReceipt:
    """A record, which is the leaf, and its COSE receipt."""

    kind: str
    record: bytes
    message: bytes


def is_ledger_key(key: NoteKey, vkey: str) -> bool:
    """Whether `key` is a key of the ledger. `vkey` is the ledger's verifying key with its statements of
    succession.

    Raises EvidenceError for another key whose name could be mistaken for the ledger's.
    """
    if key.vkey in (own for own, _ in _core.key_line(vkey)):
        return True
    ledger = vkey.split("+", 1)[0]
    if f"{key.name}/".startswith(f"{ledger}/") or f"{ledger}/".startswith(f"{key.name}/"):
        raise EvidenceError(
            f"the key name {key.name} could be mistaken for the ledger {ledger}, but the key does "
            "not belong to that ledger: sign with the ledger's key, or with a key that has "
            "another name"
        )
    return False


def build_cose_receipts(receipt: Receipt, vkey: str, key: NoteKey) -> list[CoseReceipt]:
    """Verifies the receipt with the ledger's key, and returns a COSE receipt for each record, in their order.

    The payload is the tree's root. It is detached, as RFC 9942 advises: a verifier computes it from the
    record and the proof. The subject is the log's origin. Raises ContradictedError, EvidenceError.
    """
    verified = verify(receipt, vkey)
    is_ledger_key(key, with_successions(receipt, vkey))
    made = []
    for entry, proven in zip(receipt.entries, verified.records, strict=True):
        checkpoint = proven.checkpoint
        proof = encode([checkpoint.size, proven.index, _inclusion_path(entry.proof)])
        message = sign1(
            key,
            checkpoint.origin,
            {VERIFIABLE_DATA_STRUCTURE: _RFC9162_SHA256},
            base64.b64decode(checkpoint.root),
            unprotected={VERIFIABLE_DATA_PROOFS: {_INCLUSION_LABEL: [proof]}},
            detached=True,
        )
        made.append(CoseReceipt(proven.kind, entry.record.encode(), message))
    return made


def _inclusion_path(proof: str) -> list[bytes]:
    """The inclusion path in a verified proof (docs/reference/ledger-format.md, section 4)."""
    lines = proof.split("\n\n", 1)[0].split("\n")
    index = next(number for number, line in enumerate(lines) if line.startswith("index "))
    return [base64.b64decode(line) for line in lines[index + 1 :]]
