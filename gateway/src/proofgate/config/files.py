"""Reads the files that a configuration names, and detects changes of them."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from proofgate.config.document import FieldPath
from proofgate.config.problems import Findings

MAX_CONFIG_BYTES = 16 << 20
MAX_FILE_BYTES = 1 << 20


def read_bounded(path: Path, maximum: int) -> bytes:
    """Reads at most `maximum` + 1 bytes of a file, so that a longer file is detected. Raises OSError."""
    with path.open("rb") as stream:
        return stream.read(maximum + 1)


def digest_of(content: bytes) -> str:
    """A digest of a file's content, which may itself be secret."""
    return hashlib.sha256(content).hexdigest()


def current_digests(paths: Iterable[Path]) -> dict[Path, str | None]:
    """Returns the digest of each file's current content; None for an unreadable file."""
    return {path: _digest_now(path) for path in paths}


def _digest_now(path: Path) -> str | None:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _folder_digest(path)
        if not stat.S_ISREG(mode):
            return None  # the content of a pipe cannot be read twice
        return digest_of(read_bounded(path, MAX_CONFIG_BYTES))
    except OSError:
        return None


def _folder_digest(path: Path) -> str:
    """A digest of a folder's listing, without the contents of its files, which may be many. Raises
    OSError."""
    names = sorted(os.listdir(path))  # noqa: PTH208 - thousands of names, every two seconds
    # Kubernetes renews a mount as a whole by changing the target of this link.
    if "..data" in names:
        return digest_of(os.readlink(path / "..data").encode())  # noqa: PTH115
    looks = [(name, os.stat(path / name)) for name in names]  # noqa: PTH116
    seen = [(name, look.st_ino, look.st_size, look.st_mtime_ns) for name, look in looks]
    return digest_of(repr(seen).encode())


class ReferencedFiles:
    """Reads the files that settings name; each problem is reported at the field that names the file."""

    def __init__(self, base: Path, findings: Findings) -> None:
        self._base = base
        self._findings = findings
        self.digests: dict[Path, str | None] = {}

    def watch_folder(self, name: str) -> None:
        """Records the digest of a folder's listing before the folder is read, so that later changes are
        detected."""
        folder = self._base / name
        self.digests |= current_digests([folder])

    def read_text(self, path: FieldPath, name: str) -> str:
        """Returns the content of a text file, or "" after reporting why there is none."""
        file = self._base / name
        self.digests[file] = None
        try:
            content = read_bounded(file, MAX_FILE_BYTES)
            if file.is_file():
                self.digests[file] = digest_of(content)
            if len(content) <= MAX_FILE_BYTES:
                return content.decode()
            message = f"{file} is larger than {MAX_FILE_BYTES} bytes"
            self._findings.report("config_file_too_large", path, message)
        except OSError as error:
            self.digests |= current_digests([file])
            message = f"{file} cannot be read: {error.strerror}"
            self._findings.report("config_file_unreadable", path, message)
        except UnicodeDecodeError:
            self._findings.report("config_file_unreadable", path, f"{file} is not UTF-8 text")
        return ""

    def read_key_file(self, path: FieldPath, name: str) -> str:
        """Returns a signing key and what follows its line, or "" after reporting why there is none."""
        known = len(self._findings.problems)
        text = self.read_text(path, name).strip()
        if not text and len(self._findings.problems) == known:
            self._findings.report("config_empty_secret", path, f"{name} is empty")
        return text

    def read_secret(self, path: FieldPath, name: str) -> str:
        """Returns the only line of a secret file, or "" after reporting why there is none."""
        known = len(self._findings.problems)
        secret = self.read_text(path, name).strip()
        if len(self._findings.problems) > known:
            return ""
        if not secret:
            self._findings.report("config_empty_secret", path, f"{name} is empty")
        elif not re.fullmatch(r"[!-~]+", secret):
            # A key goes into an HTTP header: a second line in it would be a second header.
            message = f"{name} must contain one line of printable ASCII without spaces"
            self._findings.report("config_bad_secret", path, message)
            return ""
        return secret
