"""The file from which HAProxy loads the entries of a map at its start, before the agent has set one.

A map's own file does not have the entries of shards. This file has all entries as the agent last read them,
even if HAProxy was not running then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from proofgate.haproxy_sidecar.map_sources import SourceContents
from proofgate.haproxy_sidecar.target import RefusedError

# The mode of mounted Secrets: other users must not read digests of keys.
_MODE = 0o440
# Minimum seconds between two writes. A map of 100,000 keys has 9 MB, which are written completely.
_MIN_WRITE_INTERVAL_SECONDS = 1.0


class StartupMapFile:
    """The file at `path`, which HAProxy's configuration names."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._rests_until = float("-inf")
        self._done: SourceContents | None = None
        self.trouble: str | None = None

    def save(
        self, content: SourceContents, entries_of: Callable[[SourceContents], Mapping[str, str]]
    ) -> None:
        """Write the entries of `content`, unless the file already has them or was written very recently.

        Refused content is not written, just as it is not sent to HAProxy.
        """
        if content == self._done or self._clock() < self._rests_until:
            return
        try:
            entries = entries_of(content)
        except RefusedError:
            self._done = content
            return
        self._done = content if self._write(entries) else None
        self._rests_until = self._clock() + _MIN_WRITE_INTERVAL_SECONDS

    def _write(self, entries: Mapping[str, str]) -> bool:
        """Replace the file atomically. If that fails, remove it, because it is out of date."""
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            new.unlink(missing_ok=True)
            opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
            with os.fdopen(opened, "w", encoding="ascii") as file:
                file.writelines(f"{key} {value}\n" for key, value in entries.items())
            new.replace(self._path)
        except OSError as error:
            self.trouble = f"{self._path} cannot be written: {error.strerror}"
            self._remove(new)
            self._remove(self._path)
            return False
        self.trouble = None
        return True

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.trouble = f"{path} is out of date and cannot be removed: {error.strerror}"
