"""Moves the wall clock of a process and lets its system calls fail, while it runs."""

from __future__ import annotations

import errno
import mmap
import os
import struct
import subprocess
from enum import IntFlag
from pathlib import Path

#: The layout of the shared memory, equal to the one in shim.c.
_TOLD = struct.Struct("=qiI1008s")
_NANOSECONDS = 1_000_000_000


class Calls(IntFlag):
    """Kinds of system calls."""

    WRITING = 1
    SYNCING = 2
    READING = 4
    OPENING = 8


class Shim:
    """Controls the processes that are started with its `environment`. Needs a C compiler."""

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
        """The environment variables for a process."""
        return {"LD_PRELOAD": str(self._library), "PROOFGATE_SHIM": str(self._file)}

    def move_clock(self, seconds: int) -> None:
        """Sets how many seconds the wall clock is ahead of the machine's clock; negative for behind."""
        self._ahead = seconds * _NANOSECONDS
        self._tell()

    def fail(self, calls: Calls, error: int, path: str) -> None:
        """Makes calls on files whose path contains `path` fail with an errno, until `heal`."""
        self._failing = (error, calls, path)
        self._tell()

    def heal(self) -> None:
        """Ends the failures of calls."""
        self._failing = (0, Calls(0), "")
        self._tell()

    def _tell(self) -> None:
        error, calls, path = self._failing
        encoded = os.fsencode(path)
        if len(encoded) >= 1008:
            raise ValueError(f"{path} is too long")
        told = _TOLD.pack(self._ahead, error, calls, encoded)
        # The errno is written last, so that no call fails with incomplete settings.
        self._told[8:12] = bytes(4)
        self._told[12:], self._told[:8] = told[12:], told[:8]
        self._told[8:12] = told[8:12]


#: The errors of a full volume and of a broken disk.
FULL, BROKEN = errno.ENOSPC, errno.EIO
