"""Exports over the auditor's port: as columns, or as records with proofs. Bounded, and never cut silently."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from proofgate.index.audited_index import RESERVE_BYTES
from proofgate.index.errors import IndexUnusableError
from proofgate.index.export import Written, export
from proofgate.index.filter import Filter
from proofgate.index.places import Places
from proofgate.index.query import MOST_ROWS, Questions
from proofgate.index.readers import Reader
from proofgate.index.schema import time_text
from proofgate.index.show import csv_head, csv_row

#: What each format has at most: the newest exchanges.
MOST_EXCHANGES = {"csv": 50_000, "bundle": 5_000}
#: The files of one bundle; a larger one is refused.
MOST_BYTES = 96 << 20
#: For one export.
SECONDS = 60.0
CHUNK = 1 << 16
#: Until a file that was made is taken. A client that takes a byte now and then would keep it.
TAKEN_SECONDS = 900.0
#: Files that are made or being taken: of all, of readers of tenants, of one of these or of the others.
MOST_FILES, OF_TENANTS, OF_ONE = 8, 6, 2
#: What must be free before an export begins, so that it leaves the index its reserve: it is there as files
#: and as an archive.
_ROOM_BYTES = RESERVE_BYTES + 2 * MOST_BYTES
_PREFIX = "export-"
_SUFFIXES = {"csv": (".csv", "text/csv; charset=utf-8"), "bundle": (".tar.gz", "application/gzip")}


@dataclass(frozen=True)
class Made:
    """A file that was made. It has no name any more: closing it removes it."""

    file: IO[bytes]
    length: int
    name: str
    media_type: str
    exchanges: int
    #: Older ones than this time (unix microseconds) were asked for and are not in it; None when all are.
    cut_since: int | None
    #: Origins of logs that could not be read.
    unreadable: int
    signed_by: str | None
    release: Callable[[], object]

    def headers(self) -> dict[str, str]:
        """What the answer reports besides the file."""
        told = {
            "Content-Disposition": f'attachment; filename="{self.name}"',
            "Content-Length": str(self.length),
            "Proofgate-Exchanges": str(self.exchanges),
        }
        if self.cut_since is not None:
            told["Proofgate-Cut-Since"] = time_text(self.cut_since)
        if self.unreadable:
            told["Proofgate-Unreadable-Logs"] = str(self.unreadable)
        if self.signed_by is not None:
            told["Proofgate-Signed-By"] = self.signed_by
        return told

    def chunks(self) -> Iterator[bytes]:
        """Its content; afterwards it is gone. Raises TimeoutError for a client that is too slow."""
        deadline = time.monotonic() + TAKEN_SECONDS
        try:
            while chunk := self.file.read(CHUNK):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the export was not taken within {TAKEN_SECONDS:g} s")
                yield chunk
        finally:
            self.close()

    def close(self) -> None:
        """Removes it, and releases its place. May be called again."""
        self.file.close()
        self.release()


class Exports:
    """Makes files beside an index: at a time one for readers of tenants, and one for readers of all."""

    def __init__(self, index: Path, ledger: Path, signing_key: str | None = None) -> None:
        """`signing_key` signs the manifests of bundles."""
        self._index, self._ledger, self._key = index, ledger, signing_key
        self._signed_by = None if signing_key is None else signing_key.split("+")[2]
        self._making = Places(at_once=2, of_tenants=1, of_one=1)
        self._files = Places(MOST_FILES, OF_TENANTS, OF_ONE)
        self._sweep()

    def make(self, asked: Filter, form: str, reader: Reader) -> Made:
        """The newest exchanges that a reader asks for.

        Raises IndexUnusableError, NoPlaceError, and the core's LedgerError.
        """
        if form not in MOST_EXCHANGES:
            raise IndexUnusableError(f"format must be one of {', '.join(MOST_EXCHANGES)}", "bad_filter")
        release = self._files.take(reader)
        try:
            with self._making.of(reader):
                made = self._make(asked, form)
        except BaseException:
            release()
            raise
        return replace(made, release=release)

    def _make(self, asked: Filter, form: str) -> Made:
        try:
            if shutil.disk_usage(self._index).free < _ROOM_BYTES:
                raise IndexUnusableError(
                    "the volume of the index has no space left for an export", "index_full"
                )
            deadline = time.monotonic() + SECONDS
            with Questions(self._index, SECONDS) as questions:
                bounded, cut_since = newest_of(questions, asked, MOST_EXCHANGES[form])
                if form == "csv":
                    return self._columns(questions, bounded, cut_since)
            return self._bundle(bounded, cut_since, deadline)
        except OSError as error:
            raise IndexUnusableError(f"the export cannot be written: {error.strerror}", "index_io") from None

    def _columns(self, questions: Questions, asked: Filter, cut_since: int | None) -> Made:
        # It has no name: the system removes it when it is closed, whatever happens.
        file = tempfile.TemporaryFile(dir=self._index, prefix=_PREFIX)  # noqa: SIM115 - it is handed on
        try:
            file.write(csv_head().encode())
            exchanges = 0
            for row in questions.all(asked):
                file.write(csv_row(row.facts).encode())
                exchanges += 1
        except BaseException:
            file.close()
            raise
        return _made(file, "csv", exchanges, cut_since, 0, None)

    def _bundle(self, asked: Filter, cut_since: int | None, deadline: float) -> Made:
        with self._place() as out:
            draft = out.with_name(f".{out.name}.draft")

            def progress(_: Written) -> None:
                if time.monotonic() > deadline:
                    raise IndexUnusableError(
                        "the export takes too long: choose a shorter time, or use `proofgate audit export`",
                        "question_too_long",
                    )
                if sum(file.stat().st_size for file in draft.iterdir()) > MOST_BYTES:
                    raise IndexUnusableError(
                        f"the export has more than {MOST_BYTES >> 20} MiB: choose a shorter time",
                        "export_too_large",
                    )

            written = export(self._index, self._ledger, asked, out, self._key, progress)
            file = out.open("rb")
        return _made(file, "bundle", written.exchanges, cut_since, len(written.unreadable), self._signed_by)

    @contextmanager
    def _place(self) -> Iterator[Path]:
        path = self._index / f"{_PREFIX}{secrets.token_hex(8)}.tar.gz"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Removes what an auditor that was killed left."""
        with contextlib.suppress(OSError):
            for path in [*self._index.glob(f"{_PREFIX}*"), *self._index.glob(f".{_PREFIX}*.draft")]:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def newest_of(questions: Questions, asked: Filter, most: int) -> tuple[Filter, int | None]:
    """The same question for its newest `most` exchanges, and those of the same microsecond, oldest first; and
    since when it is cut, or None. Raises IndexUnusableError."""
    newest = replace(asked, newest=True)
    after, seen, since = None, 0, None
    while True:
        page = questions.page(newest, min(MOST_ROWS, most + 1 - seen), after)
        for row in page.rows:
            if seen == most:
                return replace(asked, newest=False, since=since), since
            seen += 1
            since = row.place[0]
        after = page.after
        if after is None:
            return replace(asked, newest=False), None


def _made(
    file: IO[bytes], form: str, exchanges: int, cut_since: int | None, unreadable: int, signed_by: str | None
) -> Made:
    length = file.seek(0, 2)
    file.seek(0)
    suffix, media_type = _SUFFIXES[form]
    now = time_text(time.time_ns() // 1000)[:19].replace(":", "")
    return Made(
        file,
        length,
        f"proofgate-{now}Z{suffix}",
        media_type,
        exchanges,
        cut_since,
        unreadable,
        signed_by,
        file.close,
    )
