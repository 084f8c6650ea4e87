"""Safe reading of those files of a ledger folder that others may read.

Only evidence can be read: no salts, no stored payloads, no internal files of a writer. A writer of the volume
may have replaced files by links, pipes or devices, which are neither followed nor waited for.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Maximum bytes of one response.
MAX_READ_BYTES = 1 << 20
#: Maximum number of names in a response, and of logs of a worker: one log each hour for three years.
MAX_NAMES = 32_768

_SHARD = r"[0-9]{1,9}"
_ULID = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
_NUMBER = r"[0-9]{20}"
_STATEMENT = r"[0-9A-Za-z._-]{1,100}\.note"
_LOG_FILE = (
    rf"{_NUMBER}\.(?:seg|next|record|tlog-proof|consistency)|checkpoint|{_ULID}\.checkpoint"
    r"|tree|tombstone|erasures"
)
#: Names that a reader may list and read, for each folder.
_FOLDERS = (
    (re.compile(""), re.compile(rf"{_SHARD}|ledger-name|key-successions|configurations")),
    (re.compile(_SHARD), re.compile(_ULID)),
    (re.compile(rf"{_SHARD}/{_ULID}"), re.compile(_LOG_FILE)),
    (re.compile("key-successions"), re.compile(_STATEMENT)),
    (re.compile("configurations"), re.compile(r"[0-9a-f]{64}\.json")),
)
_FILE = re.compile(
    rf"ledger-name|{_SHARD}/{_ULID}/(?:{_LOG_FILE})|key-successions/{_STATEMENT}"
    r"|configurations/[0-9a-f]{64}\.json"
)

#: Errors of opening a link or a socket.
_LINK_ERRNOS = (errno.ELOOP, errno.ENXIO)


class LedgerReadError(Exception):
    """A requested file or folder cannot be returned. Codes: `not_evidence`, `no_such_file`, `too_many_names`,
    `ledger_io`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class LedgerFiles:
    """Reader of one ledger folder."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger

    def names(self, folder: str) -> list[str]:
        """Returns the sorted names of evidence in a folder. The path is relative to the ledger folder, which
        is "".

        Raises LedgerReadError.
        """
        allowed = next((names for path, names in _FOLDERS if path.fullmatch(folder)), None)
        if allowed is None:
            raise LedgerReadError("not_evidence", "this path is not an evidence folder")
        found: list[str] = []
        with (
            _translate_errors(),
            self._folder(folder.split("/") if folder else []) as opened,
            os.scandir(opened) as entries,
        ):
            for entry in entries:
                if allowed.fullmatch(entry.name):
                    found.append(entry.name)
                if len(found) > MAX_NAMES:
                    message = f"the folder contains more than {MAX_NAMES} names"
                    raise LedgerReadError("too_many_names", message)
        return sorted(found)

    def read(self, path: str, offset: int, most: int) -> tuple[int, bytes]:
        """Returns the length of a file, and its bytes from `offset`: the smaller of `most` and
        MAX_READ_BYTES, fewer only at its end. Raises LedgerReadError."""
        if not _FILE.fullmatch(path):
            raise LedgerReadError("not_evidence", "no evidence file has this path")
        *folders, name = path.split("/")
        with _translate_errors(), self._folder(folders) as folder:
            # O_NONBLOCK prevents waiting for a pipe.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(name, flags, dir_fd=folder)
            try:
                told = os.fstat(file)
                if not stat.S_ISREG(told.st_mode):
                    raise LedgerReadError("no_such_file", "there is no such file")
                wanted = max(0, min(most, MAX_READ_BYTES, told.st_size - offset))
                content = bytearray()
                while len(content) < wanted and (
                    more := os.pread(file, wanted - len(content), offset + len(content))
                ):
                    content += more
                # The file became shorter meanwhile.
                length = told.st_size if len(content) == wanted else offset + len(content)
                return length, bytes(content)
            finally:
                os.close(file)

    @contextmanager
    def _folder(self, path: list[str]) -> Iterator[int]:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        opened = os.open(self._ledger, flags)
        try:
            for name in path:
                below = os.open(name, flags | os.O_NOFOLLOW, dir_fd=opened)
                os.close(opened)
                opened = below
            yield opened
        finally:
            os.close(opened)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translates errors of the system to LedgerReadError. A link, or a file instead of a folder, counts as
    missing."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno in _LINK_ERRNOS:
            raise LedgerReadError("no_such_file", "there is no such file") from None
        raise LedgerReadError("ledger_io", f"it cannot be read: {error.strerror}") from None
