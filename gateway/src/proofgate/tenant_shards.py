"""Tenants outside the configuration: their files are watched, and changes are applied to the worker.

The tenants are in 32 shards, each in a separate folder, so that the change of one key requires reading only
one shard. A check only calls stat on the files.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

from proofgate import _core
from proofgate.config.files import MAX_FILE_BYTES, read_bounded
from proofgate.well_known_keys import WELL_KNOWN_MESSAGE

log = logging.getLogger("proofgate")

SHARD_COUNT = 32
_FILE_NAMES = ("keys", "tenants")
_EMPTY_REPORT = {"tenants": 0, "keys": 0, "well_known": 0, "first_well_known": []}

# Device, inode, size and time of each file of a shard; None for a missing file.
_Fingerprint = tuple[tuple[int, int, int, int] | None, ...]


class TenantShards:
    """The shards below `directory`, and their state in the worker. A worker without shards has None as
    `directory`."""

    def __init__(self, worker: _core.Worker, directory: Path | None) -> None:
        self._worker = worker
        self._directory: Path | None = None
        self.seen: list[_Fingerprint] = []
        """The fingerprints of the files before the files were last read."""
        self._held: dict[int, bytes] = {}
        self._refused: dict[int, dict[str, Any]] = {}
        self._in_service: dict[str, Any] = dict(_EMPTY_REPORT)
        self.set_directory(directory)

    def set_directory(self, directory: Path | None) -> None:
        """Sets the directory of a new configuration. The next `apply_changes` reads its shards."""
        if directory != self._directory:
            self._directory = directory
            self.seen, self._held, self._refused = [], {}, {}
            self._in_service = dict(_EMPTY_REPORT)

    def fingerprints(self) -> list[_Fingerprint]:
        """The current fingerprints of the files."""
        if self._directory is None:
            return []
        return [
            tuple(
                # Creating a path object for each file would be slower than the check.
                _file_fingerprint(os.path.join(self._directory, f"{number:02}", name))  # noqa: PTH118
                for name in _FILE_NAMES
            )
            for number in range(SHARD_COUNT)
        ]

    def apply_changes(self) -> bool:
        """Reads the shards whose fingerprints have changed, and passes changes to the worker.

        Returns whether the configuration in force has changed. Raises the core's errors; the next call then
        tries again.
        """
        looks = self.fingerprints()
        if looks == self.seen:
            return False
        before = self._worker.config_digest
        seen = self.seen or [()] * len(looks)
        changed = [number for number, (old, new) in enumerate(zip(seen, looks, strict=True)) if old != new]
        files, digests, refused = self._read(changed)
        report = json.loads(self._worker.set_tenant_shards(files)) if files else {"refused": []}
        refused |= {shard["shard"]: shard for shard in report.pop("refused")}
        self.seen = looks
        self._held |= digests
        self._warn_about_well_known_keys(report)
        self._in_service |= report
        self._log_changes(changed, refused)
        return self._worker.config_digest != before

    def _read(
        self, numbers: list[int]
    ) -> tuple[list[tuple[int, bytes, bytes]], dict[int, bytes], dict[int, dict[str, Any]]]:
        """Returns the changes in some shards, their digests, and the shards that cannot be read."""
        files, digests, refused = [], {}, {}
        for number in numbers:
            try:
                keys, tenants = (self._content(number, name) for name in _FILE_NAMES)
            except OSError as error:
                problem = f"it cannot be read: {error.strerror}"
                refused[number] = {"shard": number, "file": "", "line": 0, "problem": problem}
                continue
            digest = hashlib.sha256(len(keys).to_bytes(8) + keys + tenants).digest()
            # A mount is renewed as a whole, so most files with a new fingerprint have the same content.
            if self._held.get(number) != digest:
                files.append((number, keys, tenants))
                digests[number] = digest
            elif number in self._refused:
                refused[number] = self._refused[number]
        return files, digests, refused

    def _content(self, number: int, name: str) -> bytes:
        assert self._directory is not None  # noqa: S101 - without one nothing has changed
        try:
            return read_bounded(self._directory / f"{number:02}" / name, MAX_FILE_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return b""

    def _log_changes(self, changed: list[int], refused: dict[int, dict[str, Any]]) -> None:
        for number in changed:
            before = self._refused.pop(number, None)
            now = refused.get(number)
            if now is not None:
                self._refused[number] = now
                if now != before:
                    place = f"line {now['line']} of {now['file']}: " if now["line"] else ""
                    log.error(
                        "tenant shard %02d is refused, its previous content stays in use: %s%s",
                        number,
                        place,
                        now["problem"],
                    )

    def _warn_about_well_known_keys(self, report: dict[str, Any]) -> None:
        count = report.get("well_known", 0)
        # Changes of other tenants do not repeat the message.
        names = ("well_known", "first_well_known")
        if count and any(report.get(name) != self._in_service.get(name) for name in names):
            first = ", ".join(f"{left['key']} of {left['tenant']}" for left in report["first_well_known"])
            log.error("%d tenant keys are ignored, such as %s: each is %s", count, first, WELL_KNOWN_MESSAGE)

    def status(self) -> dict[str, Any] | None:
        """The status for the admin port: locations, never values. None without shards."""
        if self._directory is None:
            return None
        return {**self._in_service, "refused": [self._refused[number] for number in sorted(self._refused)]}


def _file_fingerprint(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
