"""Configurations by their digest, beside the ledger: which rules were in force when something was decided.

Every record names the digest of its configuration. Of the configuration itself the ledger has, in one file
for each, what is no secret; the name of the file is the SHA-256 of what it holds, so it proves itself.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
from pathlib import Path

from proofgate.folder_sync import sync_folder
from proofgate.regular_file import read_regular

log = logging.getLogger("proofgate")

FOLDER = "configurations"
#: Format of archived configurations (`format`). Earlier versions wrote another format, without a number.
FORMAT = 2
_MAX_CONFIGURATION_BYTES = 64 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{16}(?:[0-9a-f]{48})?")


class ArchiveError(Exception):
    """What was asked for is not there (`configuration_unknown`), or is not what its name says
    (`configuration_changed`)."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Archive:
    """The archive of one ledger, as a worker writes it. Workers of one ledger write the same files."""

    def __init__(self, ledger: Path) -> None:
        self._folder = ledger / FOLDER
        self._waiting: list[bytes] = []

    @property
    def is_complete(self) -> bool:
        """Whether everything that was to be kept is."""
        return not self._waiting

    def store(self, content: bytes) -> None:
        """Keeps one configuration, durably. What cannot be written now waits for `retry`, and is logged."""
        if content not in self._waiting:
            self._waiting.append(content)
        self._write(logging.ERROR)

    def retry(self) -> None:
        """Keeps what could not be kept before."""
        if self._waiting:
            self._write(logging.DEBUG)

    def _write(self, level: int) -> None:
        try:
            while self._waiting:
                self._store(self._waiting[0])
                self._waiting.pop(0)
        except OSError as error:
            log.log(level, "cannot archive a configuration in %s yet, will retry: %s", self._folder, error)

    def _store(self, content: bytes) -> None:
        path = self._folder / f"{hashlib.sha256(content).hexdigest()}.json"
        if read_regular(path, _MAX_CONFIGURATION_BYTES) == content:
            return
        self._folder.mkdir(exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".", dir=self._folder)
        draft = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.chmod(0o644)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        for folder in (self._folder, self._folder.parent):
            sync_folder(folder)


def find_configuration(ledger: Path, digest: str) -> bytes:
    """The configuration of a digest, or of its first 16 digits, as records name it.

    Raises ValueError for what is no digest, ArchiveError and OSError.
    """
    if not _PREFIX.fullmatch(digest):
        raise ValueError(
            f"{digest!r} is not a digest: write all 64 or the first 16 lower-case hexadecimal digits"
        )
    folder = ledger / FOLDER
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        names = []
    held = [name.removesuffix(".json") for name in names if name.endswith(".json")]
    matches = [name for name in held if _DIGEST.fullmatch(name) and name.startswith(digest)]
    if not matches:
        raise ArchiveError(f"{folder} has no configuration with the digest {digest}", "configuration_unknown")
    for name in matches:
        content = read_regular(folder / f"{name}.json", _MAX_CONFIGURATION_BYTES)
        if content is not None and hashlib.sha256(content).hexdigest() == name:
            return content
    raise ArchiveError(
        f"the digest of {folder}/{matches[0]}.json does not match its name", "configuration_changed"
    )
