"""Text forms of a ledger's Ed25519 key, as signed notes write them (c2sp.org/signed-note).

    signing    PRIVATE+KEY+<name>+<hash>+<base64(0x01 || seed)>
    elsewhere  SIGNER <verifying> <absolute path of a Unix socket>
    verifying  <name>+<hash>+<base64(0x01 || public key)>

The hash is the first four bytes of SHA-256(name || "\\n" || 0x01 || public key), in hexadecimal. The second
form describes a key that another process holds: it contains no secret, and the operator does not contact that
process.
"""

import base64
import binascii
import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ED25519 = b"\x01"
_KEY_LENGTH = 32
_SIGNER_PREFIX = "SIGNER "
#: Maximum length of a Unix socket's path (unix(7)).
_MAX_SOCKET = 107
#: Maximum characters of a name, which conditions, Events and the status repeat.
_MAX_NAME = 256


class InvalidSigningKey(ValueError):
    """A text is not a signing key; the message says why, and contains no part of the key."""


@dataclass(frozen=True)
class LedgerKey(ABC):
    """A named Ed25519 key. `public` has 32 bytes. `former` are the verifying keys of its predecessors, and
    `successions` the signed statements about them."""

    name: str
    public: bytes
    former_keys: tuple[str, ...] = ()
    succession_statements: str = ""

    @property
    def hash(self) -> str:
        """The key's hash under its name, in hexadecimal."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:4].hex()

    @property
    def verifying_text(self) -> str:
        """The public form."""
        return f"{self.name}+{self.hash}+{base64.b64encode(_ED25519 + self.public).decode()}"

    @property
    def verifying_file(self) -> str:
        """The public form, followed by the succession statements, as `proofgate keys rotate` writes it."""
        return (
            f"{self.verifying_text}\n\n{self.succession_statements}"
            if self.succession_statements
            else self.verifying_text
        )

    @property
    @abstractmethod
    def signing_text(self) -> str:
        """The form that a signing process reads."""


@dataclass(frozen=True, init=False, repr=False)
class SigningKey(LedgerKey):
    """A key whose private half is known here. `seed` is 32 secret bytes."""

    seed: bytes = b""

    def __init__(self, name: str, seed: bytes, former: tuple[str, ...] = (), successions: str = "") -> None:
        public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
        super().__init__(name, public, former, successions)
        object.__setattr__(self, "seed", seed)

    @property
    def signing_text(self) -> str:
        """The secret form."""
        encoded = base64.b64encode(_ED25519 + self.seed).decode()
        return f"PRIVATE+KEY+{self.name}+{self.hash}+{encoded}"


@dataclass(frozen=True)
class ExternalSigningKey(LedgerKey):
    """A key that another process holds, behind the Unix socket at this path in the pod."""

    socket: str = ""

    @property
    def signing_text(self) -> str:
        """The line that names the socket."""
        return f"{_SIGNER_PREFIX}{self.verifying_text} {self.socket}"


def read(text: str) -> LedgerKey:
    """Parse the secret form, or the form of a key that another process holds; raises `InvalidSigningKey`.

    The text may continue with the previous key, which only workers use, and with statements of succession
    (`proofgate keys rotate`). The statements are trusted because they are in the Secret.

    A name has no white space and no control character, as everywhere. Here it must also be printable and have
    at most 256 characters.
    """
    first, _, behind = text.strip().partition("\n")
    first = first.strip()
    key, stated = (_parse_signer_key if first.startswith(_SIGNER_PREFIX) else _parse_private_key)(
        first, behind
    )
    if len(key.name) > _MAX_NAME or " " in key.name or not key.name.isprintable():
        raise InvalidSigningKey(
            f"its name must have 1 to {_MAX_NAME} characters, all printable and without spaces"
        )
    if key.hash != stated:
        raise InvalidSigningKey("its hash does not match its name and key")
    return key


def _parse_private_key(line: str, behind: str) -> tuple[LedgerKey, str]:
    """Return the key of a line, and the hash that the line states."""
    # base64 contains plus signs too, a name does not: the first four separate the fields.
    parts = line.split("+", 4)
    if len(parts) != 5 or parts[:2] != ["PRIVATE", "KEY"] or not parts[2]:
        raise InvalidSigningKey("it does not have the form PRIVATE+KEY+<name>+<hash>+<key>")
    return SigningKey(
        parts[2], _decode_base64(parts[4]), _parse_former_keys(parts[2], behind), _parse_successions(behind)
    ), parts[3]


def _parse_signer_key(line: str, behind: str) -> tuple[LedgerKey, str]:
    verifying, _, socket = line.removeprefix(_SIGNER_PREFIX).partition(" ")
    parts = verifying.split("+", 2)
    if len(parts) != 3 or not parts[0] or not socket.startswith("/"):
        raise InvalidSigningKey("it does not have the form SIGNER <vkey> </path/of/socket>")
    if len(socket.encode()) > _MAX_SOCKET:
        raise InvalidSigningKey(f"the path of its socket has more than {_MAX_SOCKET} bytes")
    former, successions = _parse_former_keys(parts[0], behind), _parse_successions(behind)
    return ExternalSigningKey(parts[0], _decode_base64(parts[2]), former, successions, socket), parts[1]


def _parse_former_keys(name: str, behind: str) -> tuple[str, ...]:
    olds = (line.removeprefix("old ") for line in behind.splitlines() if line.startswith(f"old {name}+"))
    return tuple(dict.fromkeys(olds))


def _parse_successions(behind: str) -> str:
    # The previous key, if present, is in the second line.
    held = behind.lstrip().startswith(("PRIVATE+KEY+", _SIGNER_PREFIX))
    statements = (behind.lstrip().partition("\n")[2] if held else behind).strip()
    if "PRIVATE+KEY+" in statements:
        raise InvalidSigningKey("the text after the key contains another signing key")
    return statements and f"{statements}\n"


def _decode_base64(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSigningKey("its last field is not base64") from None
    if len(data) != 1 + _KEY_LENGTH or data[:1] != _ED25519:
        raise InvalidSigningKey("it is not an Ed25519 key")
    return data[1:]
