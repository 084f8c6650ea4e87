"""Ownership of a volume: a file with one line in the ledger directory names its ledger.

With its signing key, a worker recognises only logs of its own shard. Without this file, a worker would write
to a volume that was mounted by mistake if it has no log of that shard, and it would be unclear later which
gateway's evidence is complete.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from proofgate.regular_file import open_regular
from proofgate.terminal import one_line

MARKER_FILE = "ledger-name"
#: Maximum bytes that are read of a mark or a checkpoint.
_MAX_TEXT_BYTES = 64 << 10
#: Maximum number of characters of a name that are shown.
_MAX_DISPLAYED_LENGTH = 256


class VolumeError(Exception):
    """The ledger directory belongs to another ledger (`ledger_foreign`), or cannot be written or marked
    (`ledger_not_writable`)."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def claim(directory: Path, name: str) -> None:
    """Ensures that a ledger directory belongs to the ledger `name`. Marks a directory without an owner.

    Workers of one gateway may call this concurrently. An old directory without a mark belongs to the ledger
    whose logs it contains. Raises VolumeError.
    """
    try:
        owner = _owner(directory) or _mark(directory, name)
    except PermissionError as error:
        raise VolumeError(
            f"this worker runs as user {os.geteuid()} and group {os.getegid()}, and cannot write "
            f"to {directory} ({error.strerror}). The storage does not apply the pod's fsGroup; "
            "NFS, for example, does not apply it. Give this user or group access to the "
            "directory (chown, chmod g+rwx), or mount the volume with these ids",
            "ledger_not_writable",
        ) from error
    except OSError as error:
        message = f"{directory} cannot be marked as this ledger's: {error}"
        raise VolumeError(message, "ledger_not_writable") from error
    if owner != name:
        raise VolumeError(
            f"{directory} belongs to the ledger {_printable(owner)}, and this worker writes {name}:"
            " mount this ledger's own volume, or an empty one",
            "ledger_foreign",
        )


def _owner(directory: Path) -> str | None:
    """The ledger to which a directory belongs, by its mark or else by any of its logs; None without an
    owner."""
    with contextlib.suppress(FileNotFoundError):
        return _text(directory / MARKER_FILE).strip()
    for checkpoint in directory.glob("*/*/checkpoint"):
        # C2SP tlog-checkpoint: the first line is the origin, here <ledger name>/<shard>/<incarnation>.
        # fsck reports an unreadable checkpoint. Any other one has the same ledger name.
        with contextlib.suppress(OSError):
            origin = _text(checkpoint).partition("\n")[0]
            return origin.rsplit("/", 2)[0]
    return None


def _printable(name: str) -> str:
    """Returns an untrusted name as one short line, without characters that could control a terminal."""
    return one_line(name if len(name) <= _MAX_DISPLAYED_LENGTH else f"{name[:_MAX_DISPLAYED_LENGTH]}…")


def _text(path: Path) -> str:
    with open_regular(path) as file:
        return file.read(_MAX_TEXT_BYTES).decode(errors="replace")


def _mark(directory: Path, name: str) -> str:
    """Marks a directory and returns the name in the mark. If two processes do this concurrently, the first
    one's name stays."""
    marker = directory / MARKER_FILE
    descriptor, path = tempfile.mkstemp(prefix=f".{MARKER_FILE}-", dir=directory)
    draft = Path(path)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{name}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o644)
        try:
            # Unlike a rename, this fails if the mark already exists.
            marker.hardlink_to(draft)
        except FileExistsError:
            pass
        except OSError:
            # The file system does not support hard links.
            draft.replace(marker)
    finally:
        draft.unlink(missing_ok=True)
    return _text(marker).strip()
