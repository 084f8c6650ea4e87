"""Moves the wall clock of a process and lets its system calls fail, while it runs."""

from __future__ import annotations

import errno
import mmap
import os
import struct
import subprocess
from enum import IntFlag
from pathlib import Path

#: As in shim.c.
_TOLD = struct.Struct("=qiI1008s")
_NANOSECONDS = 1_000_000_000


class Calls(IntFlag):
    """Kinds of system calls."""

    WRITING = 1
    SYNCING = 2
    READING = 4
    OPENING = 8


class Shim:
    """What is told to the processes that are started with its `environment`. Needs a C compiler."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "shim.so", folder / "shim"
        source = Path(__file__).with_name("shim.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", self._library, source, "-ldl"], check=True)
        self._file.write_bytes(bytes(_TOLD.size))
        with self._file.open("r+b") as opened:
            self._told = mmap.mmap(opened.fileno(), _TOLD.size)
        self._ahead, self._failing = 0, (0, Calls(0), "")

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a process is started with."""
        return {"LD_PRELOAD": str(self._library), "PROOFGATE_SHIM": str(self._file)}

    def move_clock(self, seconds: int) -> None:
        """The wall clock is so far ahead of the machine's, or behind it where that is negative."""
        self._ahead = seconds * _NANOSECONDS
        self._tell()

    def fail(self, calls: Calls, error: int, path: str) -> None:
        """Calls on files whose path holds `path` fail with an errno, until `heal`."""
        self._failing = (error, calls, path)
        self._tell()

    def heal(self) -> None:
        """No call fails any more."""
        self._failing = (0, Calls(0), "")
        self._tell()

    def _tell(self) -> None:
        error, calls, path = self._failing
        encoded = os.fsencode(path)
        if len(encoded) >= 1008:
            raise ValueError(f"{path} is too long")
        told = _TOLD.pack(self._ahead, error, calls, encoded)
        # The errno last: nothing fails in a way that is half told.
        self._told[8:12] = bytes(4)
        self._told[12:], self._told[:8] = told[12:], told[:8]
        self._told[8:12] = told[8:12]


#: What a volume that is full says, and a disk that breaks.
FULL, BROKEN = errno.ENOSPC, errno.EIO
