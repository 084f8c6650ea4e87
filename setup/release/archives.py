"""Archives with the same bytes for the same content: sorted, with one time and without owners."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping


def tar(files: Mapping[str, bytes], epoch: int, *, folders: bool = False) -> bytes:
    """A tar archive of files by their paths; with `folders`, entries of the folders above them as well.

    `epoch` is the time of every entry, in seconds since 1970.
    """
    above = {"/".join(parts[:n]) for path in files for parts in [path.split("/")] for n in range(1, len(parts))}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted({*files, *(above if folders else ())}):
            entry = tarfile.TarInfo(path)
            entry.mtime = epoch
            if path in files:
                entry.mode, entry.size = 0o644, len(files[path])
                archive.addfile(entry, io.BytesIO(files[path]))
            else:
                entry.mode, entry.type = 0o755, tarfile.DIRTYPE
                archive.addfile(entry)
    return out.getvalue()


def compressed(content: bytes) -> bytes:
    """The content in gzip format, without a name and a time in its header."""
    return gzip.compress(content, compresslevel=9, mtime=0)


def unpacked(archive: bytes) -> dict[str, bytes]:
    """The files of a tar archive, gzipped or not, by their paths."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {
            entry.name.removeprefix("./"): stream.read()
            for entry in opened
            if entry.isfile() and (stream := opened.extractfile(entry)) is not None
        }


def sha256(content: bytes) -> str:
    """In hexadecimal."""
    return hashlib.sha256(content).hexdigest()
