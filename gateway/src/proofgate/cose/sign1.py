"""COSE_Sign1 (RFC 9052, section 4.2) with Ed25519, and the labels that Proofgate's messages use."""

from __future__ import annotations

import time
from collections.abc import Mapping

from proofgate.cose.cbor import Tagged, Value, encode
from proofgate.cose.note_key import NoteKey

# Labels of headers: RFC 9052 section 3.1, RFC 9597, RFC 9942.
ALGORITHM, CONTENT_TYPE, KEY_ID, CWT_CLAIMS = 1, 3, 4, 15
VERIFIABLE_DATA_STRUCTURE, VERIFIABLE_DATA_PROOFS = 395, 396
# Labels of CWT claims: RFC 8392 section 4.
ISSUER, SUBJECT, ISSUED_AT = 1, 2, 6
_EDDSA = -8
_COSE_SIGN1 = 18


def sign1(
    key: NoteKey,
    subject: str,
    protected: Mapping[int, Value],
    payload: bytes,
    *,
    unprotected: Mapping[int, Value] | None = None,
    detached: bool = False,
) -> bytes:
    """Signs and returns a tagged COSE_Sign1. The protected header also gets the algorithm, the key id, and
    these claims: the key's name as issuer, the subject and the time. Raises EvidenceError.
    """
    header = encode(
        {
            ALGORITHM: _EDDSA,
            KEY_ID: bytes.fromhex(key.id),
            CWT_CLAIMS: {ISSUER: key.name, SUBJECT: subject, ISSUED_AT: int(time.time())},
            **protected,
        }
    )
    signature = key.sign(encode(["Signature1", header, b"", payload]))
    return encode(Tagged(_COSE_SIGN1, [header, unprotected or {}, None if detached else payload, signature]))
