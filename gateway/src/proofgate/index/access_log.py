"""Who read what: a line of JSON for each answer, on the disk before the answer is given.

The lines are the leaves of a tree of RFC 9162, whose head the auditor tells in its own signed log: a line
that is changed or taken out later is noticed. The files of one log are `access-<begun>-<first line>.jsonl`.
The first line of each is no leaf: it states the peaks of the tree before it, so that older files can be moved
away.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofgate_schema.counts import format_count

from proofgate import _core
from proofgate.folder_sync import sync_folder
from proofgate.index.access_log_quota import UNKNOWN_OWNER, LineOwner, LogUsage, line_owner

#: Beside them lies what an auditor knows of the ledger, which needs room: a reader must not fill the volume.
MAX_LOG_BYTES = 256 << 20
#: Bytes of one file after which the next file is started.
FILE_BYTES = 16 << 20
#: File that each writer locks while it adds a line: the auditor, and commands that are run by hand.
LOCK_FILE = "access.lock"
#: Maximum seconds to wait for the lock of another process.
LOCK_SECONDS = 5.0
_NAME = re.compile(r"access-([0-9]{1,20})-([0-9]{20})\.jsonl")

#: When a log was begun (unix microseconds), its lines, and the root over them.
AccessLogHead = tuple[int, int, bytes]


class AccessLogError(Exception):
    """A file is not of an access log. Says why."""


@dataclass(frozen=True)
class LogFile:
    """One file of a log."""

    path: Path
    started_at: int
    first_line: int

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
                if (told["v"], told["begun"], told["first"]) != (1, self.started_at, self.first_line):
                    raise AccessLogError(f"{self.path} starts with the header of another file")
                tree = _core.Tree(self.first_line, peaks)
            except (ValueError, KeyError, TypeError):
                message = f"{self.path} does not start with the header of an access log"
                raise AccessLogError(message) from None
            yield tree, iter(file)


def find_log_files(directory: Path) -> dict[int, list[LogFile]]:
    """The files of a directory by the log that they are of, in their order. Raises OSError."""
    found: dict[int, list[LogFile]] = {}
    for name in sorted(path.name for path in directory.iterdir()):
        if match := _NAME.fullmatch(name):
            begun = int(match[1])
            found.setdefault(begun, []).append(LogFile(directory / name, begun, int(match[2])))
    return found


class AccessLogFullError(OSError):
    """A reader's part of the log is full. The message says which part, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EDQUOT, message)


@contextmanager
def exclusive_writer(directory: Path) -> Iterator[None]:
    """Keeps other processes from adding lines. Raises OSError, also when one does not let go."""
    file = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        chown_to_directory_owner(file, directory)
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise OSError(errno.EBUSY, "another process writes the access log") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(file)


def encode_entry(entry: dict[str, Any]) -> bytes:
    """A line of the log."""
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def chown_to_directory_owner(file: int, directory: Path) -> None:
    """Gives a file that root has made to whoever has the directory, who could not open it otherwise."""
    owner, own = directory.stat(), os.fstat(file)
    if os.geteuid() == 0 and own.st_uid != owner.st_uid:
        os.fchown(file, owner.st_uid, owner.st_gid)


class AccessLog:
    """A log to which lines are added. A line that was cut by a crash stays, and the next one begins anew."""

    def __init__(
        self,
        directory: Path,
        now_us: int,
        told: AccessLogHead | None = None,
        *,
        most_bytes: int = MAX_LOG_BYTES,
        file_bytes: int = FILE_BYTES,
    ) -> None:
        """Goes on with the log that was `told` of, or begins one: where there is none, and where what is
        there is not what was told, which `changed` says then. Raises OSError."""
        self._directory, self._most_bytes, self._file_bytes = directory, most_bytes, file_bytes
        self._lock = threading.Lock()
        self._room = LogUsage()
        self._used = 0
        self.changed: str | None = None
        with exclusive_writer(directory):
            self._open(told, now_us)
            self._recount_holders()

    def _open(self, told: AccessLogHead | None, now_us: int) -> None:
        try:
            found = self._newest(told)
        except AccessLogError as error:
            self.changed = str(error)
            found = None
        if found is None:
            self._tree = _core.Tree()
            self._begun = max(
                now_us,
                (told[0] if told else 0) + 1,
                *(begun + 1 for begun in find_log_files(self._directory)),
            )
            self._file = self._start_file()
        else:
            part, self._tree = found
            self._begun, self._path = part.started_at, part.path
            self._file = os.open(part.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        #: Behind the last line that is a leaf.
        self._end = os.fstat(self._file).st_size
        if found is not None:
            self._terminate_truncated_line()

    def head(self) -> AccessLogHead:
        """How it stands; what is in it is on the disk. Lines that other processes have added are in it, as
        far as they can be read now."""
        with self._lock:
            with suppress(OSError), exclusive_writer(self._directory):
                self._recover_failed_write()
            return self._begun, self._tree.size, self._tree.root

    @property
    def max_bytes(self) -> int:
        """What all files together may have."""
        return self._most_bytes

    @property
    def used_bytes(self) -> int:
        """What all files together had when they were last looked at."""
        return self._used

    def add(self, entry: dict[str, Any], holder: LineOwner = UNKNOWN_OWNER, sharers: int = 1) -> None:
        """Adds a line, durably, in the part of its holder, which as many have equally as share that.

        Raises AccessLogFullError and OSError, and then whoever asked must get no answer.
        """
        line = encode_entry(entry)
        with self._lock, exclusive_writer(self._directory):
            self._recover_failed_write()
            self._require_space(len(line), holder, sharers)
            if self._end + len(line) > self._file_bytes and self._tree.size:
                former = self._file
                self._file = self._start_file()
                os.close(former)
                self._end = os.fstat(self._file).st_size
            written = os.write(self._file, line)
            os.fsync(self._file)
            if written != len(line):
                raise OSError(errno.ENOSPC, "the line was written only in part")
            self._tree.push(line[:-1])
            self._end += len(line)
            self._room.add_line(self._path, holder, len(line))

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def _newest(self, reported: AccessLogHead | None) -> tuple[LogFile, _core.Tree] | None:
        """The last file of the log that was reported, or of the newest one, and the tree over its lines.

        Raises AccessLogError when it is not what was reported.
        """
        logs = find_log_files(self._directory)
        if reported is None:
            return replay_log(logs[max(logs)], None) if logs else None
        if reported[0] not in logs:
            raise AccessLogError(
                f"the access log is missing, but the aggregate log covers {format_count(reported[1], 'line')} of it"
            )
        begin = max(
            (part.first_line for part in logs[reported[0]] if part.first_line <= reported[1]), default=None
        )
        if begin is None:
            raise AccessLogError(
                f"the aggregate log covers {format_count(reported[1], 'line')} of the access log, but the files "
                "with these lines are missing"
            )
        found = replay_log([part for part in logs[reported[0]] if part.first_line >= begin], reported)
        if found[1].size < reported[1]:
            raise AccessLogError(
                f"the access log has only {format_count(found[1].size, 'line')}, but the aggregate log covers "
                f"{format_count(reported[1], 'line')}: lines were removed"
            )
        return found

    def _terminate_truncated_line(self) -> None:
        """Ends the last line if a crash has cut it; it was counted as one."""
        size = self._end
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")
            os.fsync(self._file)
            self._end = size + 1

    def _recover_failed_write(self) -> None:
        """Takes what a write that failed has left as lines of their own."""
        size = os.fstat(self._file).st_size
        if size == self._end:
            return
        if size < self._end:
            raise OSError(errno.EIO, "another process truncated the file")
        left = os.pread(self._file, size - self._end, self._end)
        if not left.endswith(b"\n"):
            os.write(self._file, b"\n")
            left += b"\n"
        os.fsync(self._file)
        for line in left[:-1].split(b"\n"):
            self._tree.push(line)
            self._room.add_line(self._path, line_owner(line), len(line) + 1)
        self._end += len(left)

    def _require_space(self, length: int, holder: LineOwner, sharers: int) -> None:
        files = [part.path for log in find_log_files(self._directory).values() for part in log]
        self._used = used = sum(path.stat().st_size for path in files)
        if used + length > self._most_bytes:
            raise AccessLogFullError(
                f"{used} of at most {self._most_bytes} bytes are used: move older files away"
            )
        self._room.retain_files(files)
        refusal = self._room.full_reason(holder, length, self._most_bytes, sharers)
        if refusal is not None:
            raise AccessLogFullError(refusal)

    def _recount_holders(self) -> None:
        """Counts whose the lines are of the files that are there."""
        for log in find_log_files(self._directory).values():
            for part in log:
                with suppress(AccessLogError), part.read() as (_, lines):
                    for line in lines:
                        self._room.add_line(part.path, line_owner(line), len(line))

    def _start_file(self) -> int:
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
            chown_to_directory_owner(file, self._directory)
            draft.rename(path)
            sync_folder(self._directory)
        except OSError:
            os.close(file)
            raise
        self._path = path
        return file


def replay_log(
    files: list[LogFile], reported: AccessLogHead | None, at: Callable[[_core.Tree], None] | None = None
) -> tuple[LogFile, _core.Tree]:
    """Reads files of one log, in their order; the last of them, and the tree over all lines.

    `at` is called with the tree before the first line, and after each. Raises AccessLogError when they do not
    continue one another, or are not what was reported.
    """

    def compare(tree: _core.Tree) -> None:
        if reported is not None and tree.size == reported[1] and tree.root != reported[2]:
            raise AccessLogError(
                f"the digest of the first {format_count(reported[1], 'line')} of the access log differs from the "
                "digest in the aggregate log: lines were changed"
            )
        if at is not None:
            at(tree)

    tree: _core.Tree | None = None
    for part in files:
        with part.read() as (begun, lines):
            if tree is not None and (tree.size, tree.peaks) != (begun.size, begun.peaks):
                raise AccessLogError(f"{part.path} does not continue the file before it")
            tree = begun
            compare(tree)
            for line in lines:
                tree.push(line.removesuffix(b"\n"))
                compare(tree)
    assert tree is not None  # noqa: S101 - there is a file
    return files[-1], tree
