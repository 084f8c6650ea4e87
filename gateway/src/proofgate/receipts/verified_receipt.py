"""A receipt: its content, and what it proves with the ledger's verifying key."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from proofgate import _core
from proofgate.evidence import EvidenceError

_HASH_BYTES = 32


class ContradictedError(EvidenceError):
    """The evidence is invalid: it contradicts itself, the key, an earlier checkpoint, or the bodies."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint of a log."""

    origin: str
    size: int
    root: str
    note: str
    """The signed note, verbatim."""


@dataclass(frozen=True)
class ReceiptEntry:
    """One record with its proof, as the gateway returned them."""

    record: str
    proof: str


@dataclass(frozen=True)
class Receipt:
    """A receipt that was parsed but not verified."""

    id: str
    complete: bool
    """Whether the receipt claims to contain the end of the exchange."""
    entries: tuple[ReceiptEntry, ...]
    links: dict[tuple[str, int, int], list[bytes]]
    """Proofs of consistency, by origin, older and newer size."""
    key_successions: tuple[str, ...] = ()
    """Statements of succession of the ledger's keys."""

    @classmethod
    def parse(cls, text: str) -> Receipt:
        """Parses a response to `GET /v1/receipts/{id}`. Raises EvidenceError."""
        try:
            document = json.loads(text)
            receipt = cls(
                id=_text(document["id"]),
                complete=document["complete"] is True,
                entries=tuple(
                    ReceiptEntry(_text(entry["record"]), _text(entry["proof"]))
                    for entry in document["records"]
                ),
                links={
                    (_text(link["origin"]), int(link["old"]), int(link["new"])): [
                        _hash(entry) for entry in link["hashes"]
                    ]
                    for link in document["consistency"]
                },
                key_successions=tuple(_text(note) for note in document.get("key_successions", ())),
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise EvidenceError(
                "this is not a receipt: expected the answer of GET /v1/receipts/{id}"
            ) from None
        if not receipt.entries:
            raise EvidenceError("the receipt contains no record")
        return receipt


@dataclass(frozen=True)
class ProvenRecord:
    """A record in a signed log."""

    kind: str
    facts: dict[str, Any]
    """The record, read as JSON."""
    index: int
    checkpoint: Checkpoint


@dataclass(frozen=True)
class VerifiedReceipt:
    """A verified receipt, and what it proved."""

    receipt: Receipt
    records: tuple[ProvenRecord, ...]
    bodies: tuple[str, ...]
    """The bodies (`request`, `response`) that were verified against the record, byte for byte."""

    def record_of_kind(self, kind: str) -> ProvenRecord | None:
        """Returns the record of a kind; None without one."""
        return next((record for record in self.records if record.kind == kind), None)

    @property
    def attempts(self) -> tuple[int, int] | None:
        """The number of attempts with a record in the receipt, and the number according to the end record;
        None without an end record."""
        end = self.record_of_kind("completion")
        if end is None:
            return None
        shown = 1 + sum(record.kind == "attempt" for record in self.records)
        return shown, int(end.facts.get("attempts", 1))

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """All checkpoints in the receipt, sorted by log and size."""
        found = {
            (record.checkpoint.origin, record.checkpoint.size): record.checkpoint for record in self.records
        }
        return [found[place] for place in sorted(found)]

    @property
    def newest_checkpoints(self) -> dict[str, Checkpoint]:
        """The largest checkpoint of each log in the receipt."""
        return {checkpoint.origin: checkpoint for checkpoint in self.checkpoints}


def verify(
    receipt: Receipt, vkey: str, request: bytes | None = None, response: bytes | None = None
) -> VerifiedReceipt:
    """Checks a receipt with the ledger's verifying key, and the SHA-256 of bodies against the records.

    The records must be in logs of that ledger and belong to one exchange, and checkpoints of one log must be
    consistent. Raises ContradictedError.
    """
    vkey = with_successions(receipt, vkey)
    records = tuple(_verify_entry(entry, receipt.id, vkey) for entry in receipt.entries)
    _require_one_exchange(records)
    signed = sorted(
        (record.checkpoint for record in records), key=lambda signed: (signed.origin, signed.size)
    )
    for older, newer in pairwise(signed):
        if older.origin == newer.origin:
            require_link(receipt, older, newer, vkey)
    bodies = []
    for name, kinds, digest in (
        ("request", ("admission", "rejection"), request),
        ("response", ("completion",), response),
    ):
        if digest is not None:
            _verify_body(receipt, records, kinds, name, vkey, digest)
            bodies.append(name)
    return VerifiedReceipt(receipt, records, tuple(bodies))


def with_successions(receipt: Receipt, vkey: str) -> str:
    """Returns a verifying key followed by the statements of succession in a receipt."""
    return "\n".join([vkey, "", *receipt.key_successions]) if receipt.key_successions else vkey


def read_checkpoint(note: str, vkey: str) -> Checkpoint:
    """Verifies a signed note with the ledger's key. Raises ContradictedError."""
    try:
        signed = json.loads(_core.verify_checkpoint(note, vkey))
    except _core.ProofgateError as error:
        raise ContradictedError(f"a checkpoint is refused: {error} [{error.code}]") from None
    return Checkpoint(signed["origin"], signed["size"], signed["root"], note)


def has_link(receipt: Receipt, older: Checkpoint, newer: Checkpoint) -> bool:
    """Whether the receipt has a proof that two checkpoints of a log are consistent."""
    return older.size == newer.size or (older.origin, older.size, newer.size) in receipt.links


def require_link(receipt: Receipt, older: Checkpoint, newer: Checkpoint, vkey: str) -> None:
    """Verifies with the receipt that two checkpoints of a log are consistent. Raises ContradictedError."""
    vkey = with_successions(receipt, vkey)
    hashes = receipt.links.get((older.origin, older.size, newer.size), [])
    try:
        _core.consistency(("held", older.note), ("new", newer.note), vkey, None, hashes)
    except _core.ProofgateError as error:
        raise ContradictedError(f"the log was forked or rewritten: {error} [{error.code}]") from None


def _verify_entry(entry: ReceiptEntry, request_id: str, vkey: str) -> ProvenRecord:
    try:
        proved = json.loads(_core.verify_proof(entry.record.encode(), entry.proof, vkey))
    except _core.ProofgateError as error:
        raise ContradictedError(f"a proof is not valid: {error} [{error.code}]") from None
    note = entry.proof.split("\n\n", 1)[1]
    facts = json.loads(entry.record)
    if facts.get("seq") != proved["index"]:
        raise ContradictedError(f"record {proved['index']} names another position in the log than its proof")
    if facts.get("id") != request_id:
        raise ContradictedError(f"record {proved['index']} belongs to another exchange than {request_id}")
    checkpoint = Checkpoint(proved["origin"], proved["size"], proved["root"], note)
    return ProvenRecord(str(facts.get("kind")), facts, proved["index"], checkpoint)


def _require_one_exchange(records: tuple[ProvenRecord, ...]) -> None:
    places = {(record.checkpoint.origin, record.index) for record in records}
    if len(places) != len(records):
        raise ContradictedError("the receipt has a record twice")
    admissions = [record for record in records if record.kind == "admission"]
    if sum(record.kind in ("admission", "rejection") for record in records) != 1:
        raise ContradictedError("the receipt does not have exactly one admission or refusal")
    for record in records:
        if "admission" not in record.facts:
            continue
        shard, _, log = record.checkpoint.origin.rpartition("/")
        admitted = (f"{shard}/{record.facts.get('incarnation') or log}", record.facts["admission"])
        if [(admission.checkpoint.origin, admission.index) for admission in admissions] != [admitted]:
            raise ContradictedError(f"the {record.kind} belongs to another admission")


def _verify_body(
    receipt: Receipt,
    records: tuple[ProvenRecord, ...],
    kinds: tuple[str, ...],
    name: str,
    vkey: str,
    digest: bytes,
) -> None:
    entry = next(
        (entry for entry, record in zip(receipt.entries, records, strict=True) if record.kind in kinds), None
    )
    if entry is None:
        raise ContradictedError(f"the receipt contains no {kinds[0]}, so it records no {name}")
    try:
        _core.reveal_digest(entry.record.encode(), entry.proof, vkey, digest)
    except _core.ProofgateError as error:
        raise ContradictedError(f"this is not the {name} that was recorded: {error} [{error.code}]") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _hash(text: str) -> bytes:
    value = base64.b64decode(text, validate=True)
    if len(value) != _HASH_BYTES:
        raise ValueError
    return value
