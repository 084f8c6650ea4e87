"""An archive of configurations beside the ledger, by digest. It shows which rules applied to a past decision.

Every record names the digest of its configuration. The ledger has one file for each configuration, without
secrets. The file's name is the SHA-256 of its content, so the content can be verified.
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
    """A configuration is not in the archive (`configuration_unknown`), or does not match its digest
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
        """Whether all configurations that were passed to `store` are written."""
        return not self._waiting

    def store(self, content: bytes) -> None:
        """Stores one configuration durably. A failed write is logged, and repeated by `retry`."""
        if content not in self._waiting:
            self._waiting.append(content)
        self._write(logging.ERROR)

    def retry(self) -> None:
        """Writes the configurations that could not be written before."""
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
    """Returns the configuration with a digest, or with the first 16 digits of one, as records contain it.

    Raises ValueError for an invalid digest, ArchiveError and OSError.
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
