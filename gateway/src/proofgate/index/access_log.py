"""Who read what: a line of JSON for each answer, on the disk before the answer is given.

The lines are the leaves of a tree of RFC 9162, whose head the auditor tells in its own signed log: a line
that is changed or taken out later is noticed. The files of one log are `access-<begun>-<first line>.jsonl`.
The first line of each is no leaf: it states the peaks of the tree before it, so that older files can be moved
away.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofgate import _core

#: Beside them lies what an auditor knows of the ledger, which needs room: a reader must not fill the volume.
MOST_BYTES = 256 << 20
#: Of one file; the next one begins then.
FILE_BYTES = 16 << 20
_NAME = re.compile(r"access-([0-9]{1,20})-([0-9]{20})\.jsonl")

#: When a log was begun (unix microseconds), its lines, and the root over them.
Head = tuple[int, int, bytes]


class AccessLogError(Exception):
    """A file is not of an access log. Says why."""


@dataclass(frozen=True)
class Part:
    """One file of a log."""

    path: Path
    begun: int
    first: int

    @contextmanager
    def read(self) -> Iterator[tuple[_core.Tree, Iterator[bytes]]]:
        """The tree before its first line, and its lines, the last of which may be cut.

        Raises OSError, AccessLogError.
        """
        with self.path.open("rb") as file:
            header = file.readline(1 << 16)
            try:
                told = json.loads(header)
                peaks = [base64.b64decode(peak, validate=True) for peak in told["peaks"]]
                if (told["v"], told["begun"], told["first"]) != (1, self.begun, self.first):
                    raise AccessLogError(f"{self.path} begins as another file")
                tree = _core.Tree(self.first, peaks)
            except (ValueError, KeyError, TypeError):
                message = f"{self.path} does not begin as a file of an access log"
                raise AccessLogError(message) from None
            yield tree, iter(file)


def parts(directory: Path) -> dict[int, list[Part]]:
    """The files of a directory by the log that they are of, in their order. Raises OSError."""
    found: dict[int, list[Part]] = {}
    for name in sorted(path.name for path in directory.iterdir()):
        if match := _NAME.fullmatch(name):
            begun = int(match[1])
            found.setdefault(begun, []).append(Part(directory / name, begun, int(match[2])))
    return found


class AccessLog:
    """A log to which lines are added. A line that was cut by a crash stays, and the next one begins anew."""

    def __init__(
        self,
        directory: Path,
        now_us: int,
        told: Head | None = None,
        *,
        most_bytes: int = MOST_BYTES,
        file_bytes: int = FILE_BYTES,
    ) -> None:
        """Goes on with the log that was `told` of, or begins one: where there is none, and where what is
        there is not what was told, which `changed` says then. Raises OSError."""
        self._directory, self._most_bytes, self._file_bytes = directory, most_bytes, file_bytes
        self._lock = threading.Lock()
        self.changed: str | None = None
        try:
            found = self._newest(told)
        except AccessLogError as error:
            self.changed = str(error)
            found = None
        if found is None:
            self._tree = _core.Tree()
            self._begun = max(
                now_us, (told[0] if told else 0) + 1, *(begun + 1 for begun in parts(directory))
            )
            self._file = self._begin()
        else:
            part, self._tree = found
            self._begun = part.begun
            self._file = os.open(part.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        #: Behind the last line that is a leaf.
        self._end = os.fstat(self._file).st_size
        if found is not None:
            self._finish_cut()

    def head(self) -> Head:
        """How it stands; what is in it is on the disk."""
        with self._lock:
            return self._begun, self._tree.size, self._tree.root

    def add(self, entry: dict[str, Any]) -> None:
        """Adds a line, durably. Raises OSError, and then whoever asked must get no answer."""
        line = json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._settle()
            self._require_room(len(line))
            if self._end + len(line) > self._file_bytes and self._tree.size:
                fresh = self._begin()
                os.close(self._file)
                self._file, self._end = fresh, os.fstat(fresh).st_size
            written = os.write(self._file, line)
            os.fsync(self._file)
            if written != len(line):
                raise OSError(errno.ENOSPC, "the line was cut")
            self._tree.push(line[:-1])
            self._end += len(line)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def _newest(self, told: Head | None) -> tuple[Part, _core.Tree] | None:
        """The last file of the log that was told of, or of the newest one, and the tree over its lines.

        Raises AccessLogError when it is not what was told.
        """
        logs = parts(self._directory)
        if told is None:
            return replay(logs[max(logs)], None) if logs else None
        if told[0] not in logs:
            raise AccessLogError(f"{told[1]} lines of a log were told that is not there")
        begin = max((part.first for part in logs[told[0]] if part.first <= told[1]), default=None)
        if begin is None:
            raise AccessLogError(f"{told[1]} lines were told, and the files that are there begin behind them")
        found = replay([part for part in logs[told[0]] if part.first >= begin], told)
        if found[1].size < told[1]:
            raise AccessLogError(f"{told[1]} lines were told, and only {found[1].size} are there")
        return found

    def _finish_cut(self) -> None:
        """Ends the last line if a crash has cut it; it was counted as one."""
        size = self._end
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")
            os.fsync(self._file)
            self._end = size + 1

    def _settle(self) -> None:
        """Takes what a write that failed has left as lines of their own."""
        size = os.fstat(self._file).st_size
        if size == self._end:
            return
        if size < self._end:
            raise OSError(errno.EIO, "the file was shortened by somebody else")
        left = os.pread(self._file, size - self._end, self._end)
        if not left.endswith(b"\n"):
            os.write(self._file, b"\n")
            left += b"\n"
        os.fsync(self._file)
        for line in left[:-1].split(b"\n"):
            self._tree.push(line)
        self._end += len(left)

    def _require_room(self, length: int) -> None:
        used = sum(part.path.stat().st_size for log in parts(self._directory).values() for part in log)
        if used + length > self._most_bytes:
            message = f"there are {used} bytes of {self._most_bytes}: move older files away"
            raise OSError(errno.EFBIG, message)

    def _begin(self) -> int:
        """Makes a file that goes on behind the lines that there are, and opens it. Raises OSError."""
        first = self._tree.size
        peaks = [base64.b64encode(peak).decode() for peak in self._tree.peaks]
        header = json.dumps({"v": 1, "begun": self._begun, "first": first, "peaks": peaks}) + "\n"
        path = self._directory / f"access-{self._begun}-{first:020d}.jsonl"
        draft = path.with_suffix(".draft")
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(draft, flags, 0o600)
        try:
            os.write(file, header.encode())
            os.fsync(file)
            draft.rename(path)
            folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError:
            os.close(file)
            raise
        return file


def replay(
    files: list[Part], told: Head | None, at: Callable[[_core.Tree], None] | None = None
) -> tuple[Part, _core.Tree]:
    """Reads files of one log, in their order; the last of them, and the tree over all lines.

    `at` is called with the tree before the first line, and after each. Raises AccessLogError when they do not
    go on from each other, or are not what was told.
    """

    def compare(tree: _core.Tree) -> None:
        if told is not None and tree.size == told[1] and tree.root != told[2]:
            raise AccessLogError(f"the first {told[1]} lines are not those that were told")
        if at is not None:
            at(tree)

    tree: _core.Tree | None = None
    for part in files:
        with part.read() as (begun, lines):
            if tree is not None and (tree.size, tree.peaks) != (begun.size, begun.peaks):
                raise AccessLogError(f"{part.path} does not go on from the file before it")
            tree = begun
            compare(tree)
            for line in lines:
                tree.push(line.removesuffix(b"\n"))
                compare(tree)
    assert tree is not None  # noqa: S101 - there is a file
    return files[-1], tree
