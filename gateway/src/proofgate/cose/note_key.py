"""A key that signs COSE messages, from a signing key's file (docs/reference/ledger-format.md, section 2).

The same key may sign notes and COSE messages. The signed bytes of a COSE message start with 84 6a, and no
UTF-8 text does, so a signature of one is never valid for the other.
"""

from __future__ import annotations

import base64
import socket
from dataclasses import dataclass
from pathlib import Path

from proofgate import _core
from proofgate.evidence import EvidenceError

_SIGNATURE_BYTES = 64
_TIMEOUT_SECONDS = 10.0
_SIGNER = "SIGNER "


@dataclass(frozen=True, repr=False)
class NoteKey:
    """An Ed25519 key with a name. Its representation shows no secret."""

    vkey: str
    _seed: bytes | None = None
    _socket: str | None = None

    @classmethod
    def read(cls, path: Path) -> NoteKey:
        """Reads the first line of a signing key's file: a key, or a reference to a key in an external signer.

        Raises EvidenceError, which repeats nothing of the file.
        """
        try:
            line = path.read_text(encoding="utf-8").lstrip().split("\n", 1)[0].strip()
        except OSError as error:
            raise EvidenceError(f"{path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise EvidenceError(f"{path} contains no signing key: it is not text") from None
        try:
            vkey = _core.verifying_key(line)
            if line.startswith(_SIGNER):
                return cls(vkey, _socket=line.split(" ", 2)[2])
            seed = base64.b64decode(line.split("+", 4)[4])[1:]
        except (ValueError, IndexError):
            raise EvidenceError(
                f"{path} contains no signing key: create one with proofgate keys generate"
            ) from None
        return cls(vkey, _seed=seed)

    @property
    def name(self) -> str:
        """The key's name."""
        return self.vkey.split("+", 1)[0]

    @property
    def id(self) -> str:
        """The id in the key's vkey, 8 hexadecimal digits."""
        return self.vkey.split("+", 2)[1]

    def sign(self, message: bytes) -> bytes:
        """Returns the signature of a message, 64 bytes. Raises EvidenceError."""
        if self._seed is None:
            return self._sign_externally(message)
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._seed).sign(message)

    def _sign_externally(self, message: bytes) -> bytes:
        """Signs with the protocol in docs/how-to/use-an-external-signer.md."""
        vkey = self.vkey.encode()
        question = len(vkey).to_bytes(2, "big") + vkey + len(message).to_bytes(4, "big") + message
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as signer:
                signer.settimeout(_TIMEOUT_SECONDS)
                signer.connect(self._socket or "")
                signer.sendall(question)
                with signer.makefile("rb") as answer:
                    refused, rest = answer.read(1) != b"\0", answer.read(_SIGNATURE_BYTES)
        except OSError as error:
            why = error.strerror or "it does not answer in time"
            raise EvidenceError(f"the external signer does not sign: {why}") from None
        if refused or len(rest) != _SIGNATURE_BYTES:
            raise EvidenceError("the external signer refuses to sign, or its answer is not a signature")
        return rest


def public_key(vkey: str) -> bytes:
    """The public key in a vkey, 32 bytes."""
    return base64.b64decode(vkey.split("+", 2)[2])[1:]
