"""The log of a child process of `quickstart --start`: a file of limited size, which the child itself rotates.

The child rotates the file, because only the writing process can do this without a gap: `dup2` replaces a
descriptor atomically, so each write is in one of the files. A pipe to the parent would break if the parent is
killed while the worker drains.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MIB = 1024 * 1024
#: Bytes above which a log is renamed and replaces the previous log: at most two files for each process.
MAX_LOG_BYTES = 8 * MIB
_CHECK_SECONDS = 1.0
#: Descriptors of standard output and standard error, which both write to the log.
_STREAMS = (1, 2)


def previous_log_path(log: Path) -> Path:
    """Returns the path of the previous file of a log."""
    return log.with_name(f"{log.name}.1")


def open_log(log: Path) -> int:
    """Opens a log for appending and returns the descriptor. Raises OSError."""
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def rotate_if_full(log: Path, maximum: int = MAX_LOG_BYTES, streams: Iterable[int] = _STREAMS) -> None:
    """Renames a log of more than `maximum` bytes, and redirects the streams of this process to a new one.

    Raises OSError; the streams then still write to the old file.
    """
    if log.stat().st_size <= maximum:
        return
    fresh = log.with_name(f".{log.name}")
    descriptor = open_log(fresh)
    try:
        log.replace(previous_log_path(log))
        fresh.replace(log)
        for stream in streams:
            os.dup2(descriptor, stream)
    finally:
        os.close(descriptor)


def run_rotation(log: Path) -> None:
    """Starts a thread that rotates the log of this process whenever it is full."""

    def check() -> None:
        # A full volume must not end the process. The next check follows soon.
        with suppress(OSError):
            rotate_if_full(log)

    def watch() -> None:
        while True:
            time.sleep(_CHECK_SECONDS)
            check()

    check()
    threading.Thread(target=watch, name="log-file", daemon=True).start()


class LogReader:
    """The new lines of a log that another process writes and rotates."""

    def __init__(self, log: Path) -> None:
        """Starts at the current end of the log. Raises OSError."""
        self._log = log
        self._files = [_LogFile(log, at_end=True)]

    def lines(self) -> Iterator[str]:
        """Yields the complete lines since the last call. Raises OSError."""
        *older, newest = self._files
        for file in (*older, newest):
            yield from file.lines()
        if not newest.is_at(self._log):
            for file in older:
                file.close()
            # A write that started before the rotation may end in the old file, so the old file is read once
            # more.
            following = _LogFile(self._log)
            self._files = [newest, following]
            yield from newest.lines()
            yield from following.lines()

    def close(self) -> None:
        """Closes the open file."""
        for file in self._files:
            file.close()


class _LogFile:
    """One file of a log, and the position up to which it was read."""

    def __init__(self, path: Path, *, at_end: bool = False) -> None:
        self._file = path.open("rb")
        if at_end:
            self._file.seek(0, os.SEEK_END)
        self._rest = b""

    def lines(self) -> Iterator[str]:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return (line.decode(errors="replace") for line in lines)

    def is_at(self, path: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), path.stat())
        except FileNotFoundError:
            # Between the two renames of a rotation, no file has this name.
            return True

    def close(self) -> None:
        self._file.close()
