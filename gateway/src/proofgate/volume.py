"""Whose volume it is: the ledger directory says so itself, in a file of one line.

A signing key tells a worker only about logs of its own shard. A volume that was mounted by mistake, without a
log of that shard, would take its records without a word, and nobody could tell afterwards which gateway's
evidence is complete.
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
    """The ledger directory is another ledger's (`ledger_foreign`), or cannot be written or marked
    (`ledger_not_writable`)."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def claim(directory: Path, name: str) -> None:
    """Makes sure that a ledger directory belongs to the ledger `name`; marks one that belongs to nobody.

    Workers of one gateway may claim at the same time. A directory from before there were marks belongs to the
    ledger whose logs it holds. Raises VolumeError.
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
    """The ledger that a directory belongs to, by its mark or else by any of its logs; None: nobody's."""
    with contextlib.suppress(FileNotFoundError):
        return _text(directory / MARKER_FILE).strip()
    for checkpoint in directory.glob("*/*/checkpoint"):
        # C2SP tlog-checkpoint: the first line is the origin, here <ledger name>/<shard>/<incarnation>.
        # One that cannot be read is for fsck to report; another one tells the same.
        with contextlib.suppress(OSError):
            origin = _text(checkpoint).partition("\n")[0]
            return origin.rsplit("/", 2)[0]
    return None


def _printable(name: str) -> str:
    """A name that anybody may have written there: one short line, in which nothing steers a terminal."""
    return one_line(name if len(name) <= _MAX_DISPLAYED_LENGTH else f"{name[:_MAX_DISPLAYED_LENGTH]}…")


def _text(path: Path) -> str:
    with open_regular(path) as file:
        return file.read(_MAX_TEXT_BYTES).decode(errors="replace")


def _mark(directory: Path, name: str) -> str:
    """Marks a directory and returns the name on the mark: of two at once, the first one's."""
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
            # Fails where the mark is already there, unlike a rename.
            marker.hardlink_to(draft)
        except FileExistsError:
            pass
        except OSError:
            # A file system without hard links.
            draft.replace(marker)
    finally:
        draft.unlink(missing_ok=True)
    return _text(marker).strip()
