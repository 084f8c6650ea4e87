"""Keys for tests, and notes signed with them, in the text forms of Go's note package."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ED25519 = b"\x01"


@dataclass(frozen=True)
class Key:
    """An Ed25519 key with a name; the same name and seed give the same key."""

    name: str
    seed: bytes = bytes([7]) * 32

    @property
    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)

    @property
    def _public(self) -> bytes:
        return _ED25519 + self._private.public_key().public_bytes_raw()

    @property
    def secret(self) -> str:
        """The secret part of the signing key."""
        return base64.b64encode(_ED25519 + self.seed).decode()

    @property
    def signing(self) -> str:
        """The signing key as text."""
        return f"PRIVATE+KEY+{self.name}+{self._number(self.name).hex()}+{self.secret}"

    @property
    def verifying(self) -> str:
        """The verifying key as text."""
        return f"{self.name}+{self._number(self.name).hex()}+{base64.b64encode(self._public).decode()}"

    def _number(self, name: str) -> bytes:
        return hashlib.sha256(f"{name}\n".encode() + self._public).digest()[:4]

    def checkpoint(self, origin: str, size: int, root: bytes) -> str:
        """A signed checkpoint of a log; `origin` is the key's name or starts with it."""
        text = f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"
        signature = self._number(origin) + self._private.sign(text.encode())
        return f"{text}\n\N{EM DASH} {origin} {base64.b64encode(signature).decode()}\n"


#: The ledger's key, the auditor's key and the retention key.
LEDGER = Key("proofgate.dev/ns/demo")
AUDITOR = Key("proofgate.dev/ns/audit", bytes([9]) * 32)
RETENTION_KEY = Key("proofgate.dev/ns/keeping", bytes([5]) * 32)
#: The ledger's verifying key.
VKEY = LEDGER.verifying


def jwk(kid: str) -> dict[str, str]:
    """A public key of a token issuer (RFC 7517); only `kid` differs between keys."""
    numbers = ec.derive_private_key(7, ec.SECP256R1()).public_key().public_numbers()
    x, y = (
        base64.urlsafe_b64encode(number.to_bytes(32, "big")).decode().rstrip("=")
        for number in (numbers.x, numbers.y)
    )
    return {"kid": kid, "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "x": x, "y": y}


def key_set(*kids: str) -> str:
    """A key set as an issuer publishes it."""
    return json.dumps({"keys": [jwk(kid) for kid in kids]})
