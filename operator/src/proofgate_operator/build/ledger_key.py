"""Text forms of a ledger's Ed25519 key, as signed notes write them (c2sp.org/signed-note).

    signing    PRIVATE+KEY+<name>+<hash>+<base64(0x01 || seed)>
    verifying  <name>+<hash>+<base64(0x01 || public key)>

The hash is the first four bytes of SHA-256(name || "\\n" || 0x01 || public key), in hexadecimal.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ED25519 = b"\x01"
_SEED_LENGTH = 32


class InvalidSigningKey(ValueError):
    """A text is no signing key; the message says why and holds no part of it."""


@dataclass(frozen=True, repr=False)
class SigningKey:
    """A named Ed25519 key. `seed` is 32 secret bytes; `former` are the verifying keys of those before it, and
    `successions` the statements that say so."""

    name: str
    seed: bytes
    former: tuple[str, ...] = ()
    successions: str = ""

    @property
    def _public(self) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw()

    @property
    def _hash(self) -> str:
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self._public).digest()[:4].hex()

    @property
    def signing_text(self) -> str:
        """The secret form."""
        encoded = base64.b64encode(_ED25519 + self.seed).decode()
        return f"PRIVATE+KEY+{self.name}+{self._hash}+{encoded}"

    @property
    def verifying_text(self) -> str:
        """The public form."""
        return f"{self.name}+{self._hash}+{base64.b64encode(_ED25519 + self._public).decode()}"

    @property
    def verifying_file(self) -> str:
        """The public form, with the statements behind it, as `proofgate keys rotate` writes it."""
        return f"{self.verifying_text}\n\n{self.successions}" if self.successions else self.verifying_text


def read(text: str) -> SigningKey:
    """Read the secret form; raises `InvalidSigningKey`.

    Behind the first line may stand the key before it, which is the workers' business, and statements by which
    keys follow each other (`proofgate keys rotate`). They are believed for standing in the Secret.
    """
    first, _, behind = text.strip().partition("\n")
    # base64 has a plus sign too, a name has none: the first four separate the fields.
    parts = first.strip().split("+", 4)
    if len(parts) != 5 or parts[:2] != ["PRIVATE", "KEY"] or not parts[2]:
        raise InvalidSigningKey("it does not have the form PRIVATE+KEY+<name>+<hash>+<key>")
    try:
        data = base64.b64decode(parts[4], validate=True)
    except binascii.Error:
        raise InvalidSigningKey("its last field is not base64") from None
    if len(data) != 1 + _SEED_LENGTH or data[:1] != _ED25519:
        raise InvalidSigningKey("it is not an Ed25519 key")
    olds = (line.removeprefix("old ") for line in behind.splitlines() if line.startswith(f"old {parts[2]}+"))
    # The key before it stands in the line behind the first, if it is there.
    private = behind.lstrip().startswith(("PRIVATE+KEY+", "SIGNER "))
    statements = (behind.lstrip().partition("\n")[2] if private else behind).strip()
    if "PRIVATE+KEY+" in statements:
        raise InvalidSigningKey("another signing key stands among its statements")
    key = SigningKey(parts[2], data[1:], tuple(dict.fromkeys(olds)), statements and f"{statements}\n")
    if key._hash != parts[3]:
        raise InvalidSigningKey("its hash does not belong to its name and key")
    return key
