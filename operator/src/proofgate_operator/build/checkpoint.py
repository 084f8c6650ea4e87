"""Checkpoints of workers' logs in signed notes (c2sp.org/tlog-checkpoint, c2sp.org/signed-note).

    <ledger>/<shard>/<incarnation>
    <size>
    <base64 of the root>

    — <ledger>/<shard>/<incarnation> <base64 of four bytes of the key's hash, and the signature>

Every log signs under its own name with the one key of the ledger. The hash is computed from the log's name
and the key.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

#: Maximum lengths of notes in bytes. A worker's note has some 300 bytes; a longer one was padded. An
#: auditor's note also has a line for each of up to 32 witnesses, with their names.
_MAX_BYTES = 4096
_MAX_AGGREGATE_BYTES = 32_768
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_SIZE = re.compile(r"[1-9][0-9]{0,18}")


class InvalidCheckpoint(ValueError):
    """A text is not a checkpoint of the ledger, or its signature is invalid."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a log: its incarnation, the number of its records, and the root of their tree."""

    shard: int
    incarnation: str
    size: int
    root: str

    @property
    def sort_key(self) -> tuple[str, int]:
        """The sort key for the checkpoints of a shard: ULIDs sort by creation time."""
        return self.incarnation, self.size


@dataclass(frozen=True)
class AggregateCheckpoint:
    """The state of an auditor's log of tree heads: the number of its entries, and the root of their tree."""

    size: int
    root: str


def read(note: str, verifying_key: str) -> Checkpoint:
    """Parse a note signed by the given key; raises `InvalidCheckpoint`."""
    ledger, lines = _signed_lines(note, verifying_key, _MAX_BYTES)
    name, _, rest = lines[0].removeprefix(f"{ledger}/").partition("/")
    origin = f"{ledger}/{name}/{rest}"
    if lines[0] != origin or not name.isdecimal() or name != str(int(name)) or not _ULID.fullmatch(rest):
        raise InvalidCheckpoint("its origin is not a log of this ledger")
    if not _SIZE.fullmatch(lines[1]):
        raise InvalidCheckpoint("its size is not a number")
    return Checkpoint(int(name), rest, int(lines[1]), lines[2])


def signer(note: str, verifying_keys: Iterable[str]) -> str | None:
    """Return which of these keys signed a log's note; None if none did or the note is invalid."""
    for key in verifying_keys:
        try:
            read(note, key)
        except InvalidCheckpoint:
            continue
        return key
    return None


def read_aggregate_checkpoint(note: str, verifying_key: str) -> AggregateCheckpoint:
    """Parse a note of an auditor's log of tree heads, whose origin is the key's own name and which may be
    empty; raises `InvalidCheckpoint`."""
    origin, lines = _signed_lines(note, verifying_key, _MAX_AGGREGATE_BYTES)
    if lines[0] != origin:
        raise InvalidCheckpoint("its origin is not the name of the key")
    if lines[1] != "0" and not _SIZE.fullmatch(lines[1]):
        raise InvalidCheckpoint("its size is not a number")
    return AggregateCheckpoint(int(lines[1]), lines[2])


def _signed_lines(note: str, verifying_key: str, most: int) -> tuple[str, list[str]]:
    """Return the name of the key, and the three lines of a note that the key signed; `most` is the maximum
    length in bytes."""
    try:
        length = len(note.encode())
    except UnicodeEncodeError:
        # JSON can contain an unpaired surrogate.
        raise InvalidCheckpoint("it is not text") from None
    if length > most:
        raise InvalidCheckpoint("it is too long")
    text, separator, signatures = note.partition("\n\n")
    lines = text.split("\n")
    if not separator or len(lines) != 3:
        raise InvalidCheckpoint("it does not have three lines and a signature")
    name, public = _key(verifying_key)
    _verify(f"{text}\n".encode(), signatures.splitlines(), lines[0], public)
    return name, lines


def _key(verifying_key: str) -> tuple[str, bytes]:
    """Parse `<name>+<hash>+<base64(0x01 || public key)>` into the ledger's name and its public key."""
    try:
        name, _, encoded = verifying_key.split("+", 2)
        return name, base64.b64decode(encoded, validate=True)[1:]
    except (ValueError, binascii.Error):
        raise InvalidCheckpoint("the verifying key is not valid") from None


def _verify(text: bytes, signatures: list[str], name: str, public: bytes) -> None:
    key_hash = hashlib.sha256(f"{name}\n\x01".encode() + public).digest()[:4]
    for line in signatures:
        if not line.startswith(f"— {name} "):
            continue
        try:
            signed = base64.b64decode(line.rsplit(" ", 1)[1], validate=True)
            if signed[:4] == key_hash:
                Ed25519PublicKey.from_public_bytes(public).verify(signed[4:], text)
                return
        except (ValueError, InvalidSignature):
            continue
    raise InvalidCheckpoint("it is not signed by the ledger's key")
