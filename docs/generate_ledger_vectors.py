"""Writes test vectors of docs/reference/ledger-format.md: a segment, a denied request, and the note of an export.

    python docs/generate_ledger_vectors.py           # writes docs/ledger-vectors.json
    python docs/generate_ledger_vectors.py --check   # fails when that is not up to date

Nothing of Proofgate is imported: the vectors come from the description alone, and a test holds them against the core.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import struct
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

VECTORS = Path(__file__).parent / "ledger-vectors.json"

#: ULID 01M89PCZT1JE2K4A4FYY15YK69.
INCARNATION = "01M89PCZT1JE2K4A4FYY15YK69"
ORIGIN = f"proofgate.dev/team/llm/0/{INCARNATION}"
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
RECORDS = (
    b'{"v":1,"kind":"open","seq":0}',
    b'{"v":1,"kind":"admission","seq":1,"tenant":"acme"}',
    b'{"v":1,"kind":"completion","seq":2,"admission":1}',
)
#: Records that were known to be synced when each was framed.
DURABLE = (0, 1, 1)
#: Of the vector's key, which signs nothing else: bytes 0 to 31.
SEED = bytes(range(32))
SIGNER = "proofgate.dev/team/exports"
LEDGER = "proofgate.dev/team/llm"
#: The salt of the denied request, and its body.
SALT = bytes(range(32, 64))
BODY = b'{"model":"small","messages":[{"role":"user","content":"The plan of bluebird."}]}'


def crc32c(content: bytes, crc: int = 0) -> int:
    """CRC-32C (RFC 3720 appendix B.4), which goes on with that of what was before."""
    crc ^= 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def segment() -> bytes:
    """A segment of ordinal 0 with three records. The tags are zeros: only a holder of the signing key checks them."""
    number = 0
    for digit in INCARNATION:
        number = number << 5 | ALPHABET.index(digit)
    incarnation = number.to_bytes(16, "big")
    head = struct.pack(
        "<8sII16sQQ32s44x", b"PROOFGT\x01", 2, 0, incarnation, 0, 0, hashlib.sha256(ORIGIN.encode()).digest()
    )
    previous = crc32c(head)
    content = head + struct.pack("<I", previous)
    for seq, record in enumerate(RECORDS):
        place = incarnation + struct.pack("<QQ", 0, seq)
        header = struct.pack("<IBBHQQI", len(record), 1, 0, 2, seq, DURABLE[seq], previous)
        header += struct.pack("<I", crc32c(place + header))
        body = record + bytes(-len(record) % 8) + bytes(16)
        previous = crc32c(place + body)
        content += header + body + struct.pack("<II", previous, len(record))
    return content + bytes(64)


def denial() -> dict[str, object]:
    """The record of a denied request, as the second of a log of two, with its proof."""
    body = b"proofgate/v1/request\x00" + hashlib.sha256(BODY).digest()
    policy = {"score": 100, "scope": "user", "message": "messages[0]", "rules": ["codename"]}
    fields = {
        **{"v": 1, "kind": "rejection", "seq": 1, "ts": 1764086400000000, "id": "req_01"},
        **{"tenant": "acme", "tenant_seq": 1, "key": "01234567", "key_name": "ci"},
        **{"status": 403, "code": "policy_blocked"},
        **{"model": "small", "endpoint": "/v1/chat/completions", "bytes": len(BODY)},
        "request": base64.b64encode(hmac.digest(SALT, body, "sha256")).decode(),
        "salt": hashlib.sha256(b"proofgate/v1/salt-id\x00" + SALT).hexdigest()[:16],
        "policy": {**policy, "redacted": False, "would_block": False},
        "config": "0" * 16,
    }
    record = json.dumps(fields, separators=(",", ":")).encode()
    first, second = (hashlib.sha256(b"\x00" + leaf).digest() for leaf in (RECORDS[0], record))
    root = hashlib.sha256(b"\x01" + first + second).digest()
    note, vkey = signed(f"{ORIGIN}\n2\n{base64.b64encode(root).decode()}\n", ORIGIN, LEDGER)
    extra = base64.b64encode(b"proofgate/v1/salt\x00" + SALT).decode()
    path = base64.b64encode(first).decode()
    proof = f"c2sp.org/tlog-proof@v1\nextra {extra}\nindex 1\n{path}\n\n{note}"
    return {"record": record.decode(), "body": BODY.decode(), "proof": proof, "vkey": vkey}


def signed(text: str, name: str, key_name: str) -> tuple[str, str]:
    """A note over a text, signed under a name, and the vkey of the key's own name that it verifies under."""
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    public = b"\x01" + key.public_key().public_bytes_raw()

    def key_id(of: str) -> bytes:
        return hashlib.sha256(of.encode() + b"\n" + public).digest()[:4]

    signature = base64.b64encode(key_id(name) + key.sign(text.encode())).decode()
    vkey = f"{key_name}+{key_id(key_name).hex()}+{base64.b64encode(public).decode()}"
    return f"{text}\n\N{EM DASH} {name} {signature}\n", vkey


def export_note(manifest: bytes) -> tuple[str, str]:
    """The signed note over a manifest, and the vkey that it verifies under."""
    return signed(f"proofgate/v1/export\nsha256 {hashlib.sha256(manifest).hexdigest()}\n", SIGNER, SIGNER)


def vectors() -> dict[str, object]:
    """All of them."""
    manifest = b'{"v": 3}\n'
    note, vkey = export_note(manifest)
    return {
        "segment": {
            "incarnation": INCARNATION,
            "origin": ORIGIN,
            "file": "00000000000000000000.seg",
            "hex": segment().hex(),
            "records": [record.decode() for record in RECORDS],
            "durable": list(DURABLE),
        },
        "denial": denial(),
        "export_note": {"manifest": manifest.decode(), "vkey": vkey, "note": note},
    }


def main() -> int:
    """Writes or checks them."""
    text = json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n"
    if "--check" in sys.argv[1:]:
        if VECTORS.read_text(encoding="utf-8") != text:
            print(f"{VECTORS} is not up to date: run {Path(__file__).name}")
            return 1
        return 0
    VECTORS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
