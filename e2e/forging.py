"""Forgeries of a ledger: without the signing key, a writer of the volume can make segments with valid checksums.
With the key, it can also sign them.

The layout is that of `rust-core/crates/evidence/src/frame.rs`. Tags are random, because valid tags need the key.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from proofgate import _core
from proofgate_operator.build import ledger_key

_SEGMENT_HEADER, _FRAME_HEADER, _TAG = 128, 32, 16
_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def _crc32c(data: bytes) -> int:
    """CRC-32C (RFC 3720 appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def rewrite(segment: Path, edit: Callable[[list[dict[str, Any]]], None]) -> None:
    """Passes the records of a log's first segment to `edit`, and replaces the segment by the result, renumbered."""
    data = segment.read_bytes()
    header = data[:_SEGMENT_HEADER]
    bound = header[16:40]
    records, durable, at = [], [], _SEGMENT_HEADER
    while length := int.from_bytes(data[at : at + 4], "little"):
        payload = at + _FRAME_HEADER
        records.append(json.loads(data[payload : payload + length]))
        durable.append(int.from_bytes(data[at + 16 : at + 24], "little"))
        at = payload + _padded(length) + _TAG + 8
    edit(records)
    durable += [durable[-1]] * (len(records) - len(durable))
    out, before = bytearray(header), int.from_bytes(header[124:128], "little")
    for seq, record in enumerate(records):
        text = json.dumps({**record, "seq": seq}, ensure_ascii=False, separators=(",", ":")).encode()
        head = struct.pack("<IBBHQQI", len(text), 1, 0, 2, seq, min(durable[seq], seq), before)
        place = bound + seq.to_bytes(8, "little")
        body = text.ljust(_padded(len(text)), b"\0") + os.urandom(_TAG)
        before = _crc32c(place + body)
        out += head + struct.pack("<I", _crc32c(place + head)) + body + struct.pack("<II", before, len(text))
    segment.write_bytes(bytes(out).ljust(len(data), b"\0"))


def _padded(length: int) -> int:
    return (length + 7) // 8 * 8


def seed_of(file: Path) -> bytes:
    """The 32 secret bytes in a file with a signing key."""
    key = ledger_key.read(file.read_text())
    assert isinstance(key, ledger_key.SigningKey)
    return key.seed


def sign_anew(log: Path, seed: bytes) -> None:
    """Signs the current content of a log, as a lying worker with the ledger's key can."""
    with tempfile.TemporaryDirectory(prefix="proofgate-leaves-") as scratch:
        leaves = Path(scratch) / "leaves"
        _core.export_leaves(str(log), str(leaves))
        data = leaves.read_bytes()
    tree = _core.Tree()
    while data:
        length = int.from_bytes(data[:4], "big")
        tree.push(data[4 : 4 + length])
        data = data[4 + length :]
    (log / "tree").unlink()
    key = Ed25519PrivateKey.from_private_bytes(seed)
    origin = (log / "checkpoint").read_text().split("\n", 1)[0]
    text = f"{origin}\n{tree.size}\n{base64.b64encode(tree.root).decode()}\n"
    public = key.public_key().public_bytes_raw()
    number = hashlib.sha256(f"{origin}\n".encode() + b"\x01" + public).digest()[:4]
    signature = base64.b64encode(number + key.sign(text.encode())).decode()
    (log / "checkpoint").write_text(f"{text}\n\u2014 {origin} {signature}\n")
