"""Checkpoints of workers' logs, as signed notes hold them (c2sp.org/tlog-checkpoint, c2sp.org/signed-note).

<ledger>/<shard>/<incarnation>
<size>
<base64 of the root>

— <ledger> <base64 of four bytes of the key's hash, and the signature>
"""

import base64
import binascii
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

#: A note of ours has some 300 bytes; one that somebody pads is none.
_MAX_BYTES = 4096
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_SIZE = re.compile(r"[1-9][0-9]{0,18}")


class InvalidCheckpoint(ValueError):
    """A text is no checkpoint of the ledger, or its signature does not verify."""


@dataclass(frozen=True)
class Checkpoint:
    """How far a log has come: the incarnation whose log it is, its records, and the root of their tree."""

    shard: int
    incarnation: str
    size: int
    root: str

    @property
    def age(self) -> tuple[str, int]:
        """What orders the checkpoints of a shard: ULIDs sort by the time of their making."""
        return self.incarnation, self.size


def read(note: str, verifying_key: str) -> Checkpoint:
    """Read a note, whose signature is by the key of that text form; raises `InvalidCheckpoint`."""
    if len(note.encode()) > _MAX_BYTES:
        raise InvalidCheckpoint("it is too long")
    text, separator, signatures = note.partition("\n\n")
    lines = text.split("\n")
    if not separator or len(lines) != 3:
        raise InvalidCheckpoint("it does not have three lines and a signature")
    ledger, key_hash, public = _key(verifying_key)
    _verify(f"{text}\n".encode(), signatures.splitlines(), ledger, key_hash, public)
    name, _, rest = lines[0].removeprefix(f"{ledger}/").partition("/")
    origin = f"{ledger}/{name}/{rest}"
    if lines[0] != origin or not name.isdecimal() or name != str(int(name)) or not _ULID.fullmatch(rest):
        raise InvalidCheckpoint("its origin is not a log of this ledger")
    if not _SIZE.fullmatch(lines[1]):
        raise InvalidCheckpoint("its size is no number")
    return Checkpoint(int(name), rest, int(lines[1]), lines[2])


def _key(verifying_key: str) -> tuple[str, bytes, Ed25519PublicKey]:
    """Read `<name>+<hash>+<base64(0x01 || public key)>`."""
    try:
        name, key_hash, encoded = verifying_key.split("+", 2)
        data = base64.b64decode(encoded, validate=True)
        return name, bytes.fromhex(key_hash), Ed25519PublicKey.from_public_bytes(data[1:])
    except (ValueError, binascii.Error):
        raise InvalidCheckpoint("the ledger's verifying key is none") from None


def _verify(text: bytes, signatures: list[str], name: str, key_hash: bytes, public: Ed25519PublicKey) -> None:
    for line in signatures:
        if not line.startswith(f"— {name} "):
            continue
        try:
            signed = base64.b64decode(line.rsplit(" ", 1)[1], validate=True)
            if signed[:4] == key_hash:
                public.verify(signed[4:], text)
                return
        except (binascii.Error, InvalidSignature):
            continue
    raise InvalidCheckpoint("it is not signed by the ledger's key")
