"""A mirror in a directory, on another volume or on a file system that itself protects files."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from proofgate.folder_sync import sync_folder
from proofgate.mirror.target import CHUNK_BYTES, ConflictError, MirrorError, MirrorObject

_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT}
#: Suffix of a file while it is written. After a crash, the file is written again from the start.
_PART_SUFFIX = ".part"


class DirectoryTarget:
    """A mirror whose objects are files in a directory. Files are created once and never overwritten."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.name = str(root)

    def problem(self) -> str | None:
        """Returns None: a directory offers only the protection of its file system."""
        if not self._root.is_dir():
            raise MirrorError("mirror_unreachable", f"{self._root} does not exist")
        return None

    def put(self, piece: MirrorObject) -> bool:
        """See `Target`."""
        path = self._root / piece.key
        try:
            if os.path.lexists(path):
                self._compare(path, piece)
                return False
            self._create_folder(path.parent)
            part = path.with_name(f".{path.name}{_PART_SUFFIX}")
            self._write(part, piece)
            try:
                # A rename would replace a file that another process has created meanwhile.
                os.link(part, path)
            except FileExistsError:
                self._compare(path, piece)
                return False
            finally:
                part.unlink()
            sync_folder(path.parent)
        except OSError as error:
            raise _mirror_error(error) from None
        return True

    def keys(self, prefix: str) -> Iterator[str]:
        """See `Target`."""
        top = self._root / prefix
        try:
            found = sorted(path for path in top.rglob("*") if path.is_file() and not path.is_symlink())
        except OSError as error:
            raise _mirror_error(error) from None
        for path in found:
            if not path.name.endswith(_PART_SUFFIX):
                yield path.relative_to(self._root).as_posix()

    def fetch(self, key: str, write: Callable[[bytes], object]) -> None:
        """See `Target`."""
        try:
            with (self._root / key).open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    write(chunk)
        except OSError as error:
            raise _mirror_error(error) from None

    def _write(self, part: Path, piece: MirrorObject) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(part, flags, 0o440), "wb") as file:
                for chunk in piece.chunks():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _compare(self, path: Path, piece: MirrorObject) -> None:
        if path.is_symlink() or not path.is_file() or path.stat().st_size != piece.length:
            raise ConflictError(piece.key)
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").digest() != piece.sha256:
                raise ConflictError(piece.key)

    def _create_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._create_folder(folder.parent)
            folder.mkdir(mode=0o750, exist_ok=True)
            sync_folder(folder.parent)


def _mirror_error(error: OSError) -> MirrorError:
    code = "mirror_full" if error.errno in _FULL_ERRNOS else "mirror_unreachable"
    return MirrorError(code, f"{error.filename or 'the directory'}: {error.strerror}")
