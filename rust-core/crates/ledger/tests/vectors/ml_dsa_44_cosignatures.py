"""Writes ml-dsa-44-cosignatures.txt: ML-DSA-44 cosignatures (c2sp.org/tlog-cosignature) by pyca/cryptography.

    python ml_dsa_44_cosignatures.py > ml-dsa-44-cosignatures.txt

The first line is the witness's vkey. Two notes of one checkpoint follow, each after a line with the note's name. One
note has a time, and the other has the time 0. Both omit the log's own signature.
"""

import base64
import hashlib

from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

NAME, ORIGIN, SIZE, ROOT = "pq.example/w1", "log.example/audit", 7, bytes([7]) * 32
KEY = MLDSA44PrivateKey.from_seed_bytes(bytes([3]) * 32)
PUBLIC = b"\x06" + KEY.public_key().public_bytes_raw()
ID = hashlib.sha256(NAME.encode() + b"\n" + PUBLIC).digest()[:4]


def opaque(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def note(time: int) -> str:
    message = b"subtree/v1\n\0" + opaque(NAME) + time.to_bytes(8, "big") + opaque(ORIGIN)
    message += bytes(8) + SIZE.to_bytes(8, "big") + ROOT
    signature = base64.b64encode(ID + time.to_bytes(8, "big") + KEY.sign(message)).decode()
    text = f"{ORIGIN}\n{SIZE}\n{base64.b64encode(ROOT).decode()}\n"
    return f"{text}\n\N{EM DASH} {NAME} {signature}\n"


print(f"{NAME}+{ID.hex()}+{base64.b64encode(PUBLIC).decode()}")
for name, time in (("timed", 1_764_086_400), ("untimed", 0)):
    print(f"= {name}\n{note(time)}", end="")
