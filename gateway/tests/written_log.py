"""A log in a worker's format with the test's records: one segment, and a checkpoint over it.

`rust-core/crates/evidence/src/frame.rs` defines the layout. Tags, which only a worker reads, are zeros.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from signing import LEDGER, Key

from proofgate import _core

SEGMENT = "00000000000000000000.seg"
_TAG = bytes(16)
_ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_DIGEST = "A" * 43 + "="
#: Default fields of a record, by kind.
_USUAL: dict[str, dict[str, Any]] = {
    "open": {"version": "0", "config": "01" * 32, "predecessor": None},
    "admission": {
        "key": "01234567",
        "model": "gpt",
        "provider": "openai",
        "upstream_model": "gpt",
        "bytes": 5,
        "endpoint": "/v1/chat/completions",
        "stream": False,
        "request": _DIGEST,
        "reserved": None,
    },
    "attempt": {"upstream_model": "gpt", "failure": "connect", "failed_status": None, "failed_sent": "no"},
    "completion": {
        "status": 200,
        "upstream_status": 200,
        "outcome": "complete",
        "bytes": 7,
        "response": _DIGEST,
        "usage": None,
        "charged": None,
        "duration_us": 11,
    },
    "rejection": {"tenant": None, "status": 403, "code": "policy_denied", "endpoint": None, "bytes": 5},
    "seal": {"reason": "drained"},
}
_NOTE = {"score": 0, "rules": [], "redacted": False, "would_block": False}
_PREDECESSOR = {"size": 0, "root": _DIGEST, "sealed": False}


def stored(record: dict[str, Any]) -> bytes:
    """The bytes of a record; missing fields have the defaults of its kind."""
    kind = record["kind"]
    whole = {"v": 1, "kind": kind, **_USUAL.get(kind, {}), "config": "01" * 8, **record}
    if kind == "open":
        whole["config"] = record.get("config", "01" * 32)
    if kind == "seal":
        whole["records"] = record["seq"]
    if whole.get("policy") is not None:
        whole["policy"] = _NOTE | whole["policy"]
    if whole.get("predecessor") is not None:
        whole["predecessor"] = _PREDECESSOR | whole["predecessor"]
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def write_log(directory: Path, origin: str, records: Iterable[bytes], key: Key = LEDGER) -> str:
    """Replaces a directory's records, signs them, and returns the checkpoint."""
    held = list(records)
    write_segment(directory, origin, held)
    tree = _core.Tree()
    for record in held:
        tree.push(record)
    note = key.checkpoint(origin, tree.size, tree.root)
    (directory / "checkpoint").write_text(note)
    return note


def write_segment(directory: Path, origin: str, records: Iterable[bytes]) -> None:
    """Replaces a directory's records; the checkpoint stays."""
    incarnation = _ulid(origin.rpartition("/")[2])
    header = b"PROOFGT\x01" + struct.pack("<II", 2, 0) + incarnation + bytes(16)
    header += hashlib.sha256(origin.encode()).digest() + bytes(44)
    before = _crc32c(header)
    out = bytearray(header + struct.pack("<I", before))
    bound = _crc32c_state(incarnation + bytes(8))
    for seq, record in enumerate(records):
        place = _crc32c_state(struct.pack("<Q", seq), bound)
        head = struct.pack("<IBBHQQI", len(record), 1, 0, 2, seq, seq, before)
        body = record.ljust((len(record) + 7) // 8 * 8, b"\0") + _TAG
        before = _crc32c_state(body, place) ^ 0xFFFFFFFF
        out += head + struct.pack("<I", _crc32c_state(head, place) ^ 0xFFFFFFFF) + body
        out += struct.pack("<II", before, len(record))
    directory.mkdir(parents=True, exist_ok=True)
    (directory / SEGMENT).write_bytes(out)


def records_of(directory: Path) -> list[bytes]:
    """The stored records of a directory's segment."""
    data, at = (directory / SEGMENT).read_bytes(), 128
    records = []
    while length := int.from_bytes(data[at : at + 4], "little"):
        records.append(data[at + 32 : at + 32 + length])
        at += 32 + (length + 7) // 8 * 8 + len(_TAG) + 8
    return records


def change(directory: Path, old: str, new: str) -> None:
    """Replaces text in stored records, as anyone who can write the volume can; the checkpoint stays."""
    origin = (directory / "checkpoint").read_text().split("\n", 1)[0]
    records = b"\0".join(records_of(directory))
    assert old.encode() in records
    write_segment(directory, origin, records.replace(old.encode(), new.encode()).split(b"\0"))


def _ulid(text: str) -> bytes:
    number = 0
    for digit in text:
        number = number * 32 + _ULID_DIGITS.index(digit)
    return number.to_bytes(16, "big")


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def _crc32c_state(data: bytes, crc: int = 0xFFFFFFFF) -> int:
    """CRC-32C (RFC 3720 appendix B.4) before its final inversion, so that it can continue."""
    table = _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


def _crc32c(data: bytes) -> int:
    return _crc32c_state(data) ^ 0xFFFFFFFF
