"""The copy of one log: it grows record by record, up to a checkpoint that the auditor accepted.

No byte after the checkpoint's last record is copied, because the worker may be writing there. The progress of
the copy is in a separate file, which is written after the bytes are on the disk. Bytes after this position
are from an interrupted write, and are written again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Protocol

from proofgate import _core
from proofgate.folder_sync import sync_folder
from proofgate.replica.frames import (
    MAX_FRAME_BYTES,
    SEGMENT_HEADER_BYTES,
    complete_frames,
    first_record,
    is_seal,
)

#: Bytes of the first request for a segment, and the maximum of later requests.
_FIRST_READ_BYTES = 64 << 10
_MAX_READ_BYTES = 1 << 20
#: Folder of the copies in the folder of a replica.
LEDGER_FOLDER = "ledger"
_NODE_BYTES = 32
_TREE_FOLDER = "tree"
TOMBSTONE_FILE = "tombstone"
_SEGMENT = re.compile(r"[0-9]{20}\.(seg|next)")
#: Files of a removed log that a worker still serves, and limits on these files.
_RETAINED_FILE = re.compile(
    r"tombstone|[0-9]{20}\.(record|tlog-proof|consistency)|checkpoint|[0-9A-HJKMNP-TV-Z]{26}\.checkpoint"
)
#: The signed notes of a log: its own, and notes about the remains of earlier logs.
_NOTE_FILE = re.compile(r"checkpoint|[0-9A-HJKMNP-TV-Z]{26}\.checkpoint")
_MAX_RETAINED_FILES = 256
_MAX_RETAINED_BYTES = 1 << 20
#: Bytes that are read of a note: one more than its maximum size.
_MAX_NOTE_BYTES = (64 << 10) + 1
#: Maximum number of remembered configurations of one log.
_MAX_CONFIGURATIONS = 1000
#: The digest of the archived configuration in an `open` or a `config` record.
_REFERENCE = re.compile(rb'"config":"([0-9a-f]{64})"(?:,"settings":"([0-9a-f]{64})")?')


class LedgerSource(Protocol):
    """A worker's ledger folder. Raises OSError; FileNotFoundError for what does not exist."""

    def start_round(self) -> None:
        """Starts a round, in which reading has a time limit."""

    def list_folder(self, folder: str) -> list[str]:
        """Returns the names in a folder."""

    def read(self, path: str, offset: int, most: int) -> tuple[int, bytes]:
        """Returns the length of a file and its bytes from `offset`; fewer than `most` only at its end."""


class CopyError(Exception):
    """The worker does not have the records that the auditor has accepted."""


@dataclass(frozen=True)
class CopyCursor:
    """The progress of a copy: the number of records, and the segment and offset of the next one."""

    records: int = 0
    segment: str = ""
    offset: int = 0
    removed: bool = False
    #: Digests of configurations that the copied records name.
    configurations: tuple[str, ...] = ()
    #: Whether the last copied record is a seal.
    sealed: bool = False
    #: Whether the log's signed notes are copied too.
    notes: bool = False


class LogCopy:
    """The copy of the log at `place` (`<shard>/<incarnation>`), below `root`. For use by one thread."""

    def __init__(self, root: Path, place: str, require_room: Callable[[int], None] = lambda _: None) -> None:
        """`require_room` is called with the number of bytes before they are written. An exception prevents
        the write."""
        self.place = place
        self.folder = root / LEDGER_FOLDER / place
        self._cursor_file = root / "cursors" / f"{place.replace('/', '-')}.json"
        self._require_room = require_room
        self.cursor = self._read_cursor()
        #: Digests of configurations that copied records name.
        self.configurations = set(self.cursor.configurations)

    def _read_cursor(self) -> CopyCursor:
        try:
            return CopyCursor(**json.loads(self._cursor_file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return CopyCursor()

    def has_records(self, size: int) -> bool:
        """Whether all records of a log with `size` records are copied."""
        return self.cursor.removed or self.cursor.records >= size

    def is_complete(self, size: int) -> bool:
        """Whether the copy has all files that a mirror needs of a log that ended with `size` records."""
        return self.cursor.removed or (self.cursor.records >= size and self.cursor.notes)

    def copy_records(self, source: LedgerSource, size: int) -> None:
        """Continues the copy up to `size` records.

        Raises OSError, and CopyError if the worker has fewer records; copied records stay.
        """
        if self.has_records(size):
            return
        names = source.list_folder(self.place)
        if TOMBSTONE_FILE in names:
            # The log may have been removed since, with its records.
            raise CopyError("the worker has removed the log")
        segments = sorted(filter(_SEGMENT.fullmatch, names), key=_sort_key)
        if self.cursor.records == 0 or self.cursor.segment not in segments:
            # A prepared segment is renamed when it is first used, so the copy starts again.
            self.discard()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            begun = segments.index(self.cursor.segment) if self.cursor.segment else 0
            for segment in segments[begun:]:
                if self.cursor.records < size:
                    self._copy_segment(source, segment, size)
            self._copy_tree(source)
        finally:
            self._save()
        if self.cursor.records < size:
            raise CopyError(f"the worker has {self.cursor.records} of its {size} accepted records")

    def _copy_segment(self, source: LedgerSource, segment: str, size: int) -> None:
        path, of = f"{self.place}/{segment}", self.folder / segment
        continued = segment == self.cursor.segment
        offset = self.cursor.offset if continued else 0
        header = b""
        if not continued:
            header = source.read(path, 0, SEGMENT_HEADER_BYTES)[1]
            if first_record(header) != self.cursor.records:
                return
        elif not of.is_file() or of.stat().st_size < offset:
            self.discard()
            raise CopyError("its copy was truncated, and the log is copied again")
        before = self.cursor
        with of.open("r+b" if continued else "w+b", buffering=0) as file:
            file.truncate(offset)
            file.seek(offset)
            if header:
                _write_all(file, header)
                self.cursor = CopyCursor(self.cursor.records, segment, len(header))
            try:
                self._append(source, path, file, size)
            finally:
                try:
                    os.fdatasync(file.fileno())
                except OSError:
                    # It is unknown which of the bytes are on the disk.
                    self.cursor = before
                    raise

    def _append(self, source: LedgerSource, path: str, file: FileIO, size: int) -> None:
        wanted = _FIRST_READ_BYTES
        while self.cursor.records < size:
            offset = self.cursor.offset
            length, content = source.read(path, offset, wanted)
            found = complete_frames(content, self.cursor.records, size)
            if found.length == 0:
                if wanted >= MAX_FRAME_BYTES or offset + len(content) >= length:
                    return
                wanted = _MAX_READ_BYTES
                continue
            self._require_room(found.length)
            _write_all(file, content[: found.length])
            self.configurations.update(
                (match[2] or match[1]).decode() for match in _REFERENCE.finditer(content, 0, found.length)
            )
            self.cursor = CopyCursor(
                found.next_record,
                self.cursor.segment,
                offset + found.length,
                sealed=is_seal(content, found.last_offset),
            )
            wanted = _MAX_READ_BYTES

    def _copy_tree(self, source: LedgerSource) -> None:
        """Copies the tree's hashes. They are derived from the records; without them, reading is slower."""
        records = self.cursor.records
        most = (2 * records - records.bit_count()) * _NODE_BYTES
        with (self.folder / _TREE_FOLDER).open("ab") as file:
            at = min(file.tell(), most) // _NODE_BYTES * _NODE_BYTES
            file.truncate(at)
            while at < most:
                try:
                    _, content = source.read(
                        f"{self.place}/{_TREE_FOLDER}", at, min(_MAX_READ_BYTES, most - at)
                    )
                except FileNotFoundError:
                    return
                content = content[: len(content) // _NODE_BYTES * _NODE_BYTES]
                if not content:
                    return
                self._require_room(len(content))
                file.write(content)
                at += len(content)

    def copy_notes(self, source: LedgerSource) -> None:
        """Copies the signed notes of an ended log. Before the end, its worker replaces them.

        Raises OSError, and CopyError if there are too many.
        """
        if self.cursor.removed or self.cursor.notes:
            return
        names = [name for name in source.list_folder(self.place) if _NOTE_FILE.fullmatch(name)]
        if len(names) > _MAX_RETAINED_FILES:
            raise CopyError(f"it has too many checkpoints: {len(names)} files")
        for name in names:
            _, content = source.read(f"{self.place}/{name}", 0, _MAX_NOTE_BYTES)
            # This is written even on a full volume, because a copy can be removed after it is mirrored.
            _write(self.folder / name, content)
        self.cursor = replace(self.cursor, notes=True)
        self._save()

    def save_checkpoint(self, note: str) -> None:
        """Stores the accepted checkpoint of an ended log that its worker no longer has.

        Raises OSError.
        """
        _write(self.folder / "checkpoint", note.encode())
        self.cursor = replace(self.cursor, notes=True)
        self._save()

    def apply_removal(self, source: LedgerSource, note: str, key: str, keeping_key: str | None) -> bool:
        """If a log was legitimately removed, removes its copied records and keeps its remaining files.
        Returns whether that is so. `note` is the accepted checkpoint. Raises OSError, and CopyError for a
        tombstone that is not from the retention job."""
        if self.cursor.removed:
            return True
        names = source.list_folder(self.place)
        if TOMBSTONE_FILE not in names:
            return False
        kept = [name for name in names if _RETAINED_FILE.fullmatch(name)]
        if len(kept) > _MAX_RETAINED_FILES:
            raise CopyError(f"too many of its files remain: {len(kept)}")
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = []
        # The tombstone is written last, because afterwards the records are no longer read.
        for name in sorted(kept, key=lambda name: name == TOMBSTONE_FILE):
            _, content = source.read(f"{self.place}/{name}", 0, _MAX_RETAINED_BYTES)
            _write(self.folder / name, content)
            written.append(self.folder / name)
        if not self._is_removed(note, key, keeping_key):
            for path in reversed(written):
                path.unlink()
            raise CopyError("its tombstone is refused")
        for path in self.folder.iterdir():
            if _SEGMENT.fullmatch(path.name) or path.name == _TREE_FOLDER:
                path.unlink()
        self.cursor = CopyCursor(self.cursor.records, removed=True)
        self._save()
        return True

    def _is_removed(self, note: str, key: str, keeping_key: str | None) -> bool:
        try:
            _, report, _ = _core.fsck_pinned(str(self.folder), note, key, keeping_key)
        except _core.LedgerError:
            return False
        removed = json.loads(report)["incarnations"][0].get("removed")
        return removed is not None and bool(removed["verified"])

    def discard(self) -> None:
        """Removes the copy. The next one starts at the first record."""
        self._cursor_file.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.cursor = CopyCursor()
        self.configurations.clear()

    def _save(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            sync_folder(self.folder)
        self._cursor_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        named = tuple(sorted(self.configurations)[:_MAX_CONFIGURATIONS])
        cursor = replace(self.cursor, configurations=named)
        _write(self._cursor_file, json.dumps(asdict(cursor)).encode())


def _sort_key(name: str) -> tuple[bool, str]:
    """The sort key of a segment's name: prepared segments follow segments that are named by their first
    record."""
    return name.endswith(".next"), name


def _write_all(file: FileIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) or 0 :]


def _write(path: Path, content: bytes) -> None:
    """Writes a small file atomically."""
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fdatasync(file.fileno())
    draft.replace(path)
