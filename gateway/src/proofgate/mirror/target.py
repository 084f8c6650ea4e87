"""Where a mirror is: what it takes, and how it says that it does not."""

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
    """A mirror cannot be written or read now. The message says why, without a secret."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConflictError(Exception):
    """Another object has the key of a piece. The message is the key."""


class FileChangedError(Exception):
    """A file is not any more what was verified."""


@dataclass(frozen=True)
class MirrorObject:
    """What is to be mirrored under a key: some bytes, or the beginning of a file, whose digest is known."""

    key: str
    length: int
    sha256: bytes
    source: Path | bytes

    @classmethod
    def from_bytes(cls, key: str, content: bytes) -> MirrorObject:
        """Bytes that are at hand."""
        return cls(key, len(content), hashlib.sha256(content).digest(), content)

    def chunks(self) -> Iterator[bytes]:
        """Its bytes. Raises FileChangedError, before the last of them, when they are others; MirrorError."""
        digest, left, held = hashlib.sha256(), self.length, b""
        try:
            with self._open() as file:
                while left and (chunk := file.read(min(CHUNK_BYTES, left))):
                    digest.update(chunk)
                    left -= len(chunk)
                    # One is held back: of others nothing whole is ever sent.
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
        # Whoever writes the volume may have put a link or a pipe there.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.fdopen(os.open(self.source, flags), "rb")


class MirrorTarget(Protocol):
    """A place for pieces, each under a key of letters, digits, `.`, `_`, `-` and `/`. One thread uses it."""

    name: str
    """The address of the target as configured, without secrets."""

    def problem(self) -> str | None:
        """Why nothing may be put there although it answers: it would not be kept. Raises MirrorError."""

    def put(self, piece: MirrorObject) -> bool:
        """Puts a piece whole or not at all, durably; whether it was not there before.

        Raises ConflictError when something else is there, which stays; FileChangedError, MirrorError.
        """

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys of what was put first under each. Raises MirrorError."""

    def fetch(self, key: str, write: Callable[[bytes], object]) -> None:
        """Reads what was put first under a key. Raises MirrorError."""
