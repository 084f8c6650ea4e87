"""The access log: one JSON line for each response to a reader, written to disk before the response is sent.

The lines are the leaves of an RFC 9162 tree, whose head the auditor writes to its own signed log, so a line
that is changed or removed later is detected. The files of one log are `access-<begun>-<first line>.jsonl`.
The first line of each file is not a leaf. It contains the peaks of the tree before it, so that older files
can be moved away.
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

#: Maximum bytes of the access log. Its volume also has the auditor's state, so readers must not fill it.
MAX_LOG_BYTES = 256 << 20
#: Bytes of one file after which the next file is started.
FILE_BYTES = 16 << 20
#: File that each writer (the auditor, or a command that is run by hand) locks while it adds a line.
LOCK_FILE = "access.lock"
#: Maximum seconds to wait for the lock of another process.
LOCK_SECONDS = 5.0
_NAME = re.compile(r"access-([0-9]{1,20})-([0-9]{20})\.jsonl")

#: The start time of a log (Unix microseconds), its number of lines, and the root over them.
AccessLogHead = tuple[int, int, bytes]


class AccessLogError(Exception):
    """A file does not belong to the expected access log. The message says why."""


@dataclass(frozen=True)
class LogFile:
    """One file of a log."""

    path: Path
    started_at: int
    first_line: int

    @contextmanager
    def read(self) -> Iterator[tuple[_core.Tree, Iterator[bytes]]]:
        """Opens the file: the tree before its first line, and its lines, the last of which may be incomplete.

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
    """Returns the files in a directory by start time of their log, in order. Raises OSError."""
    found: dict[int, list[LogFile]] = {}
    for name in sorted(path.name for path in directory.iterdir()):
        if match := _NAME.fullmatch(name):
            begun = int(match[1])
            found.setdefault(begun, []).append(LogFile(directory / name, begun, int(match[2])))
    return found


class AccessLogFullError(OSError):
    """A reader's part of the log, or the log itself, is full. The message says which, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EDQUOT, message)


@contextmanager
def exclusive_writer(directory: Path) -> Iterator[None]:
    """Locks the log against other processes. Raises OSError, also if another process does not release the
    lock."""
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
    """Encodes an entry as a line of the log."""
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def chown_to_directory_owner(file: int, directory: Path) -> None:
    """Changes the owner of a file that root created to the owner of the directory, who could not open it
    otherwise."""
    owner, own = directory.stat(), os.fstat(file)
    if os.geteuid() == 0 and own.st_uid != owner.st_uid:
        os.fchown(file, owner.st_uid, owner.st_gid)


class AccessLog:
    """A log to which lines are added. A line that a crash truncated stays, and the next entry starts on a new
    line."""

    def __init__(
        self,
        directory: Path,
        now_us: int,
        reported: AccessLogHead | None = None,
        *,
        most_bytes: int = MAX_LOG_BYTES,
        file_bytes: int = FILE_BYTES,
    ) -> None:
        """Continues the log with the head `reported`. Starts a new log if there is none, or if the existing log
        does not match `reported`; `changed` then says why. Raises OSError."""
        self._directory, self._most_bytes, self._file_bytes = directory, most_bytes, file_bytes
        self._lock = threading.Lock()
        self._room = LogUsage()
        self._used = 0
        self.changed: str | None = None
        with exclusive_writer(directory):
            self._open(reported, now_us)
            self._recount_holders()

    def _open(self, reported: AccessLogHead | None, now_us: int) -> None:
        try:
            found = self._newest(reported)
        except AccessLogError as error:
            self.changed = str(error)
            found = None
        if found is None:
            self._tree = _core.Tree()
            self._begun = max(
                now_us,
                (reported[0] if reported else 0) + 1,
                *(begun + 1 for begun in find_log_files(self._directory)),
            )
            self._file = self._start_file()
        else:
            part, self._tree = found
            self._begun, self._path = part.started_at, part.path
            self._file = os.open(part.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        #: End of the last line that is a leaf, in bytes.
        self._end = os.fstat(self._file).st_size
        if found is not None:
            self._terminate_truncated_line()

    def head(self) -> AccessLogHead:
        """Returns the head, which covers only lines on the disk. It includes lines of other processes, if
        they can be read now."""
        with self._lock:
            with suppress(OSError), exclusive_writer(self._directory):
                self._recover_failed_write()
            return self._begun, self._tree.size, self._tree.root

    @property
    def max_bytes(self) -> int:
        """Maximum bytes of all files together."""
        return self._most_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of all files together at the last check."""
        return self._used

    def add(self, entry: dict[str, Any], holder: LineOwner = UNKNOWN_OWNER, sharers: int = 1) -> None:
        """Adds a line durably. It counts towards the holder's part, which is the pool divided by `sharers`.

        Raises AccessLogFullError and OSError; the reader must then get no response.
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
        """The last file of the reported log, or of the newest log if none was reported, and the tree over its
        lines; None without a log.

        Raises AccessLogError if the log does not match the reported head.
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
        """Terminates the last line if a crash truncated it. It already counts as a line."""
        size = self._end
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")
            os.fsync(self._file)
            self._end = size + 1

    def _recover_failed_write(self) -> None:
        """Counts the remains of a failed write, and lines of other processes, as separate lines."""
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
        """Counts the bytes of each holder's lines in the existing files."""
        for log in find_log_files(self._directory).values():
            for part in log:
                with suppress(AccessLogError), part.read() as (_, lines):
                    for line in lines:
                        self._room.add_line(part.path, line_owner(line), len(line))

    def _start_file(self) -> int:
        """Creates and opens the next file, which continues after the existing lines. Raises OSError."""
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
    """Reads files of one log in order. Returns the last file and the tree over all lines.

    `at` is called with the tree before the first line and after each line. Raises AccessLogError if the files
    do not continue each other, or do not match the reported head.
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
