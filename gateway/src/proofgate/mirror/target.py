"""The interface of a mirror's target, and its errors."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

#: Bytes that are read and sent at a time.
CHUNK_BYTES = 1 << 18


class MirrorError(Exception):
    """A mirror cannot be written or read now. The message says why and contains no secret."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConflictError(Exception):
    """Another object already has the key. The message is the key."""


class FileChangedError(Exception):
    """A file differs from the content that was verified."""


@dataclass(frozen=True)
class MirrorObject:
    """An object to mirror: a key, and bytes or the first part of a file, with a known digest."""

    key: str
    length: int
    sha256: bytes
    source: Path | bytes

    @classmethod
    def from_bytes(cls, key: str, content: bytes) -> MirrorObject:
        """Creates an object from bytes in memory."""
        return cls(key, len(content), hashlib.sha256(content).digest(), content)

    def chunks(self) -> Iterator[bytes]:
        """Yields the bytes. If they do not match the digest, raises FileChangedError before the last chunk.
        Raises MirrorError."""
        digest, left, held = hashlib.sha256(), self.length, b""
        try:
            with self._open() as file:
                while left and (chunk := file.read(min(CHUNK_BYTES, left))):
                    digest.update(chunk)
                    left -= len(chunk)
                    # One chunk is held back, so that changed content is never sent completely.
                    if held:
                        yield held
                    held = chunk
        except OSError as error:
            raise MirrorError("mirror_source", f"{self.source!s} cannot be read: {error.strerror}") from None
        if left or digest.digest() != self.sha256:
            raise FileChangedError(str(self.source))
        yield held

    def _open(self) -> BinaryIO:
        if isinstance(self.source, bytes):
            return io.BytesIO(self.source)
        # A writer of the volume may have replaced the file by a link or a pipe.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.fdopen(os.open(self.source, flags), "rb")


class MirrorTarget(Protocol):
    """A storage for objects, each with a key of letters, digits, `.`, `_`, `-` and `/`. For use by one
    thread."""

    name: str
    """The address of the target as configured, without secrets."""

    def problem(self) -> str | None:
        """Returns why a reachable target may not be used, because it would not protect objects; None if it
        may. Raises MirrorError."""

    def put(self, piece: MirrorObject) -> bool:
        """Writes an object atomically and durably. Returns whether it did not exist before.

        Raises ConflictError if another object exists, which stays; FileChangedError, MirrorError.
        """

    def keys(self, prefix: str) -> Iterator[str]:
        """Yields the keys of all objects with a prefix. Raises MirrorError."""

    def fetch(self, key: str, write: Callable[[bytes], object]) -> None:
        """Reads the original object with a key. Raises MirrorError."""
