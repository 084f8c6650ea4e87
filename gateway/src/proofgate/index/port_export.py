"""Exports over the auditor's port: as CSV, or as records with proofs. They are limited, and never truncated
silently."""

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
from proofgate.index.export import ExportSummary, export
from proofgate.index.filter import Filter
from proofgate.index.query import MAX_ROWS, IndexSnapshot
from proofgate.index.query_limiter import QueryLimiter
from proofgate.index.readers import Reader
from proofgate.index.row_formatting import csv_header, csv_row
from proofgate.index.schema import format_time

#: Maximum number of exchanges in an export of each format; an export keeps the newest exchanges.
MAX_EXCHANGES = {"csv": 50_000, "bundle": 5_000}
#: Maximum bytes of the files of one bundle. A larger bundle is refused.
MAX_BUNDLE_BYTES = 96 << 20
#: Maximum seconds of one export.
EXPORT_TIMEOUT_SECONDS = 60.0
CHUNK = 1 << 16
#: Maximum seconds to download an export. Without a limit, a slow client could keep the file open.
DOWNLOAD_TIMEOUT_SECONDS = 900.0
#: Maximum number of export files: in total, of tenants' readers together, of one tenant or reader.
MAX_FILES, MAX_TENANT_FILES, MAX_FILES_PER_READER = 8, 6, 2
#: Bytes that must be free before an export starts, so that the reserve of the index remains: an export is
#: stored as files and as an archive.
_MIN_FREE_BYTES = RESERVE_BYTES + 2 * MAX_BUNDLE_BYTES
_PREFIX = "export-"
_FORMATS = {"csv": (".csv", "text/csv; charset=utf-8"), "bundle": (".tar.gz", "application/gzip")}


@dataclass(frozen=True)
class ExportFile:
    """A finished export file. It has no name in the file system, so closing it removes it."""

    file: IO[bytes]
    length: int
    name: str
    media_type: str
    exchanges: int
    #: Time (Unix microseconds) before which matching exchanges are omitted; None if the export has all of
    #: them.
    truncated_since: int | None
    #: Origins of logs that could not be read.
    unreadable: int
    signed_by: str | None
    release: Callable[[], object]

    def headers(self) -> dict[str, str]:
        """Returns the header fields of the response about the file."""
        told = {
            "Content-Disposition": f'attachment; filename="{self.name}"',
            "Content-Length": str(self.length),
            "Proofgate-Exchanges": str(self.exchanges),
        }
        if self.truncated_since is not None:
            told["Proofgate-Cut-Since"] = format_time(self.truncated_since)
        if self.unreadable:
            told["Proofgate-Unreadable-Logs"] = str(self.unreadable)
        if self.signed_by is not None:
            told["Proofgate-Signed-By"] = self.signed_by
        return told

    def chunks(self) -> Iterator[bytes]:
        """Yields the content, then closes the file. Raises TimeoutError for a client that is too slow."""
        deadline = time.monotonic() + DOWNLOAD_TIMEOUT_SECONDS
        try:
            while chunk := self.file.read(CHUNK):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the export was not downloaded within {DOWNLOAD_TIMEOUT_SECONDS:g} s")
                yield chunk
        finally:
            self.close()

    def close(self) -> None:
        """Removes the file and releases its slot. May be called again."""
        self.file.close()
        self.release()


class ExportFactory:
    """Creates export files in the directory of an index: concurrently at most one for readers of a tenant,
    and one for readers of all tenants."""

    def __init__(self, index: Path, ledger: Path, signing_key: str | None = None) -> None:
        """`signing_key` signs the manifests of bundles."""
        self._index, self._ledger, self._key = index, ledger, signing_key
        self._signed_by = None if signing_key is None else signing_key.split("+")[2]
        self._making = QueryLimiter(at_once=2, of_tenants=1, of_one=1)
        self._files = QueryLimiter(MAX_FILES, MAX_TENANT_FILES, MAX_FILES_PER_READER)
        self._remove_leftovers()

    def make(self, asked: Filter, form: str, reader: Reader) -> ExportFile:
        """Creates an export of the newest exchanges that a reader requests.

        Raises IndexUnusableError, TooManyQueriesError, and the core's LedgerError.
        """
        if form not in MAX_EXCHANGES:
            raise IndexUnusableError(f"format must be one of {', '.join(MAX_EXCHANGES)}", "bad_filter")
        release = self._files.acquire(reader)
        try:
            with self._making.slot(reader):
                made = self._make(asked, form)
        except BaseException:
            release()
            raise
        return replace(made, release=release)

    def _make(self, asked: Filter, form: str) -> ExportFile:
        try:
            if shutil.disk_usage(self._index).free < _MIN_FREE_BYTES:
                raise IndexUnusableError(
                    "the volume of the index has no space left for an export", "index_full"
                )
            deadline = time.monotonic() + EXPORT_TIMEOUT_SECONDS
            with IndexSnapshot(self._index, EXPORT_TIMEOUT_SECONDS) as questions:
                bounded, cut_since = limit_to_newest(questions, asked, MAX_EXCHANGES[form])
                if form == "csv":
                    return self._write_csv(questions, bounded, cut_since)
            return self._write_bundle(bounded, cut_since, deadline)
        except OSError as error:
            raise IndexUnusableError(f"the export cannot be written: {error.strerror}", "index_io") from None

    def _write_csv(self, questions: IndexSnapshot, asked: Filter, cut_since: int | None) -> ExportFile:
        # The file has no name, so the system removes it when it is closed, even after a crash.
        file = tempfile.TemporaryFile(dir=self._index, prefix=_PREFIX)  # noqa: SIM115 - it is handed on
        try:
            file.write(csv_header().encode())
            exchanges = 0
            for row in questions.all_rows(asked):
                file.write(csv_row(row.facts).encode())
                exchanges += 1
        except BaseException:
            file.close()
            raise
        return _finish_file(file, "csv", exchanges, cut_since, 0, None)

    def _write_bundle(self, asked: Filter, cut_since: int | None, deadline: float) -> ExportFile:
        with self._temporary_path() as out:
            draft = out.with_name(f".{out.name}.draft")

            def progress(_: ExportSummary) -> None:
                if time.monotonic() > deadline:
                    raise IndexUnusableError(
                        "the export takes too long: choose a shorter time, or use `proofgate audit export`",
                        "question_too_long",
                    )
                if sum(file.stat().st_size for file in draft.iterdir()) > MAX_BUNDLE_BYTES:
                    raise IndexUnusableError(
                        f"the export has more than {MAX_BUNDLE_BYTES >> 20} MiB: choose a shorter time",
                        "export_too_large",
                    )

            written = export(self._index, self._ledger, asked, out, self._key, progress)
            file = out.open("rb")
        return _finish_file(
            file, "bundle", written.exchanges, cut_since, len(written.unreadable), self._signed_by
        )

    @contextmanager
    def _temporary_path(self) -> Iterator[Path]:
        path = self._index / f"{_PREFIX}{secrets.token_hex(8)}.tar.gz"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _remove_leftovers(self) -> None:
        """Removes files that a killed auditor left."""
        with contextlib.suppress(OSError):
            for path in [*self._index.glob(f"{_PREFIX}*"), *self._index.glob(f".{_PREFIX}*.draft")]:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def limit_to_newest(questions: IndexSnapshot, asked: Filter, most: int) -> tuple[Filter, int | None]:
    """Limits a filter to its newest `most` exchanges, and others of the same microsecond, oldest first. Also
    returns the time of the cut, or None. Raises IndexUnusableError."""
    newest = replace(asked, newest=True)
    after, seen, since = None, 0, None
    while True:
        page = questions.page(newest, min(MAX_ROWS, most + 1 - seen), after)
        for row in page.rows:
            if seen == most:
                return replace(asked, newest=False, since=since), since
            seen += 1
            since = row.position[0]
        after = page.next_cursor
        if after is None:
            return replace(asked, newest=False), None


def _finish_file(
    file: IO[bytes], form: str, exchanges: int, cut_since: int | None, unreadable: int, signed_by: str | None
) -> ExportFile:
    length = file.seek(0, 2)
    file.seek(0)
    suffix, media_type = _FORMATS[form]
    now = format_time(time.time_ns() // 1000)[:19].replace(":", "")
    return ExportFile(
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
