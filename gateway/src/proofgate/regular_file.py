"""Reading a file of a directory that others write, who may have put something else in its place."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def read_regular(path: Path, most: int) -> bytes | None:
    """What a file holds; None for one that is not there, is a link or no regular file, cannot be read, or is
    larger than `most` bytes. Waits for no writer of a pipe."""
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
    """A file, opened for reading, also through a link. Waits for no writer of a pipe.

    Raises OSError, also for what is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return file
