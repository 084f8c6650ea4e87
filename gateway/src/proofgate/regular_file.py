"""Safe reading of files in a directory that others can write."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def read_regular(path: Path, most: int) -> bytes | None:
    """Returns the content of a file; None if it does not exist, is a link or not a regular file, cannot be
    read, or is larger than `most` bytes. Does not wait for the writer of a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return content if len(content) <= most else None


def open_regular(path: Path) -> BinaryIO:
    """Opens a file for reading, also through a link. Does not wait for the writer of a pipe.

    Raises OSError, also if it is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return file
