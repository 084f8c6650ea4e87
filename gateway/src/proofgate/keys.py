"""Key material: signing key pairs, and hashes of API keys."""

from __future__ import annotations

import getpass
import os
import shlex
import stat
import sys
from pathlib import Path

from proofgate import _core

SIGNING_KEY_FILE = "signing-key"
VERIFYING_KEY_FILE = "verifying-key"


class KeyFileError(Exception):
    """A key cannot be created, read or written. The message says what to do."""


def write_key_pair(name: str, directory: Path, *, witness: bool = False) -> str:
    """Creates a key pair, writes both files (the signing key readable only by its owner) and returns the
    verifying key.

    An existing signing key is never overwritten: the logs that it signed would lose their signer. Raises
    KeyFileError.
    """
    try:
        signing, verifying = _core.generate_witness_key(name) if witness else _core.generate_key(name)
    except ValueError as error:
        raise KeyFileError(f"{name!r} is not a valid name for a key: {error}") from None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_new_file(directory / SIGNING_KEY_FILE, signing, 0o600)
        write_new_file(directory / VERIFYING_KEY_FILE, verifying, 0o644)
    except FileExistsError as error:
        raise KeyFileError(
            f"{error.filename} exists: keys are never overwritten, choose another --out"
        ) from None
    except OSError as error:
        raise KeyFileError(f"{error.filename} cannot be written: {error.strerror}") from None
    return verifying


def exposure_warning(path: Path) -> str | None:
    """Returns a warning about a signing key that every user of the machine can read; None if it is
    private."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode) or not mode & stat.S_IROTH:
        return None
    return f"every user of this machine can read the signing key {path}: chmod 600 {shlex.quote(str(path))}"


def warn_if_exposed(path: Path) -> None:
    """Prints the warning of `exposure_warning`, if there is one, to standard error."""
    warning = exposure_warning(path)
    if warning is not None:
        print(f"proofgate: warning: {warning}", file=sys.stderr)


def read_api_key() -> str:
    """Reads one API key from standard input, without echo on a terminal. Raises KeyFileError.

    API keys are never arguments, because all processes on the machine can see arguments, and shells store
    them.
    """
    return parse_api_key(
        getpass.getpass("API key: ") if sys.stdin.isatty() else sys.stdin.read(), "on standard input"
    )


def parse_api_key(text: str, where: str) -> str:
    """Returns the API key in a text, without its line end. Raises KeyFileError, whose message says `where` to
    write it."""
    key = text.rstrip("\r\n")
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise KeyFileError(f"give one API key {where}: printable ASCII, no space, one line")
    return key


def write_new_file(path: Path, text: str, mode: int) -> None:
    """Writes a new file durably, with a line end. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
