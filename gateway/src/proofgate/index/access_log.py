"""Who read what: a line of JSON for each answer, on the disk before the answer is given."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

FILE = "access.jsonl"
#: Beside it lies what an auditor knows of the ledger, which needs room: a reader must not fill the volume.
MOST_BYTES = 256 << 20


class AccessLog:
    """A file to which lines are added. A line that was cut by a crash stays, and the next one begins anew."""

    def __init__(self, directory: Path, most_bytes: int = MOST_BYTES) -> None:
        """Opens the file, or makes it. Raises OSError."""
        self._lock = threading.Lock()
        self._most_bytes = most_bytes
        path = directory / FILE
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        size = os.fstat(self._file).st_size
        self._cut = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def add(self, entry: dict[str, Any]) -> None:
        """Adds a line, durably. Raises OSError, and then whoever asked must get no answer."""
        line = json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            content = b"\n" + line if self._cut else line
            if os.fstat(self._file).st_size + len(content) > self._most_bytes:
                raise OSError(errno.EFBIG, f"it has {self._most_bytes} bytes, as many as it may")
            # Until all of it is on the disk, the line before is one that was cut.
            self._cut = True
            written = os.write(self._file, content)
            os.fsync(self._file)
            if written != len(content):
                raise OSError(28, "the line was cut")
            self._cut = False

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)
