"""Writes an export: the records of the selected exchanges, each with its path to a signed root, and a
manifest of the contents. With the ledger's verifying key, an export can be checked without the ledger.

`exchanges.jsonl` has a line for each exchange, with the stored text of each of its records and the path from
its leaf (RFC 9162 section 2.1.3). The manifest has the checkpoint of each log. Record, path and checkpoint
together form a c2sp.org/tlog-proof. `exchanges.csv` has the same data in columns.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from proofgate import _core
from proofgate.index.errors import IndexUnusableError
from proofgate.index.export_counts import ExportCounts
from proofgate.index.facts import exchange_facts, matches_filter
from proofgate.index.filter import Filter
from proofgate.index.query import ExchangeRow, IndexSnapshot
from proofgate.index.row_formatting import csv_header, csv_row
from proofgate.index.schema import format_time
from proofgate.index.stored_records import rows_with_records, successions

EXCHANGES = "exchanges.jsonl"
CSV = "exchanges.csv"
MANIFEST = "manifest.json"
NOTE = "manifest.note"
KIND = "proofgate-export"
#: Version of the format. Version 1 has no columns for sessions and end users. Version 2 has no counts, and
#: does not escape formulas after semicolons. Version 3 has the outcome `refused` for denials by rules.
#: Version 4 has no columns for the names of keys and end users and for addresses.
VERSION = 5
#: Number of rows for which records are read at a time.
_BATCH_ROWS = 500
#: Filters that an export may have if it must prove that nothing is missing.
COMPLETENESS_FILTERS = {"tenant", "since", "until"}


@dataclass
class NumberRange:
    """The admitted and denied requests of one tenant in one log that an export holds, by their numbers."""

    first: int
    last: int
    exchanges: int = 0
    #: Times of the first and the last request.
    boundary_times: list[int] = field(default_factory=lambda: [0, 0])


@dataclass
class ExportSummary:
    """Totals of a written export."""

    exchanges: int = 0
    records: int = 0
    neighbours: int = 0
    #: By origin, why the records of a log cannot be read. The exchanges of this log are left out.
    unreadable: dict[str, str] = field(default_factory=dict)


class _DigestingFile:
    """A file that is being written, with its digest."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("xb")
        self._digest = hashlib.sha256()
        self.bytes = 0

    def write(self, text: str) -> None:
        content = text.encode()
        self._file.write(content)
        self._digest.update(content)
        self.bytes += len(content)

    def manifest_entry(self) -> dict[str, Any]:
        """Returns the file's entry in the manifest."""
        return {"bytes": self.bytes, "sha256": self._digest.hexdigest()}

    def close(self) -> None:
        self._file.close()


def export(
    index: Path,
    ledger: Path,
    asked: Filter,
    out: Path,
    signing_key: str | None = None,
    progress: Callable[[ExportSummary], None] = lambda _: None,
) -> ExportSummary:
    """Writes an export into a new directory, or into a new archive if `out` ends in `.tar` or `.tar.gz`.

    Exchanges of logs that contradict the index are left out, and the manifest lists these logs.

    Raises IndexUnusableError, OSError, and ValueError for an invalid signing key.
    """
    with IndexSnapshot(index) as questions, _atomic_directory(out) as directory:
        making = _ExportWriter(questions, ledger, asked, directory, progress)
        try:
            making.write()
        finally:
            making.close()
        manifest = json.dumps(making.manifest(), indent=1, ensure_ascii=False).encode() + b"\n"
        (directory / MANIFEST).write_bytes(manifest)
        if signing_key is not None:
            note = _core.sign_export(signing_key, hashlib.sha256(manifest).digest())
            (directory / NOTE).write_text(note, encoding="utf-8")
        return making.written


def excluding_filters(asked: Filter) -> list[str]:
    """The filters that excluded exchanges; empty for an export of all."""
    return sorted(asked.to_dict().keys() - {"newest"})


@contextmanager
def _atomic_directory(out: Path) -> Iterator[Path]:
    """A directory to write into. It appears at `out` completely, or not at all after an error."""
    if out.exists():
        raise IndexUnusableError(f"{out} already exists: an export never overwrites a file", "export_exists")
    draft = out.with_name(f".{out.name}.draft")
    if draft.exists():
        raise IndexUnusableError(f"{draft} is left over from an earlier export: remove it", "export_exists")
    draft.mkdir(mode=0o700, parents=True)
    try:
        yield draft
        if out.name.endswith((".tar", ".tar.gz")):
            archive = draft / "archive"
            with tarfile.open(archive, "w:gz" if out.name.endswith(".gz") else "w") as tar:
                for name in (MANIFEST, NOTE, EXCHANGES, CSV):
                    if (draft / name).exists():
                        tar.add(draft / name, arcname=name)
            archive.replace(out)
        else:
            draft.rename(out)
    finally:
        if draft.exists():
            for path in draft.iterdir():
                path.unlink()
            draft.rmdir()


class _ExportWriter:
    def __init__(
        self,
        questions: IndexSnapshot,
        ledger: Path,
        asked: Filter,
        directory: Path,
        progress: Callable[[ExportSummary], None],
    ) -> None:
        self._questions, self._ledger, self._asked, self._progress = questions, ledger, asked, progress
        self._exchanges, self._csv = _DigestingFile(directory / EXCHANGES), _DigestingFile(directory / CSV)
        self._numbered: dict[tuple[str, str], NumberRange] = {}
        self._logs: dict[str, int] = defaultdict(int)
        self._files: dict[str, Any] = {}
        self._counts = ExportCounts()
        self.written = ExportSummary()

    def write(self) -> None:
        self._csv.write(csv_header())
        rows = self._questions.all_rows(self._asked)
        while part := list(islice(rows, _BATCH_ROWS)):
            for row, records in rows_with_records(
                self._questions, self._ledger, part, self._record_unreadable
            ):
                self._write(row, records, neighbour=False)
            self._progress(self.written)
        if self._asked.tenant is not None and self._asked.to_dict().keys() <= COMPLETENESS_FILTERS:
            for part_of in self._neighbours():
                for row, records in rows_with_records(
                    self._questions, self._ledger, [part_of], self._record_unreadable
                ):
                    self._write(row, records[:1], neighbour=True)
        self._files = {EXCHANGES: self._exchanges.manifest_entry(), CSV: self._csv.manifest_entry()}

    def close(self) -> None:
        self._exchanges.close()
        self._csv.close()

    def _record_unreadable(self, origin: str, error: _core.LedgerError) -> None:
        self.written.unreadable[origin] = f"{error} [{error.code}]"

    def manifest(self) -> dict[str, Any]:
        numbered = [
            {
                "tenant": tenant,
                "origin": origin,
                "first": of.first,
                "last": of.last,
                "exchanges": of.exchanges,
            }
            for (tenant, origin), of in sorted(self._numbered.items())
        ]
        logs = [
            {"origin": origin, "records": self._logs[origin], "checkpoint": self._questions.note(origin)}
            for origin in sorted(self._logs)
        ]
        return {
            "v": VERSION,
            "kind": KIND,
            "made": format_time(time.time_ns() // 1000),
            "ledger": self._questions.ledger_key,
            **successions(self._questions, self._ledger),
            "filter": self._asked.to_dict(),
            "left_out": excluding_filters(self._asked),
            "counts": self._counts.to_dict(),
            "exchanges": self.written.exchanges,
            "neighbours": self.written.neighbours,
            "records": self.written.records,
            "files": self._files,
            "logs": logs,
            "tenants": numbered,
            **({"unreadable": sorted(self.written.unreadable)} if self.written.unreadable else {}),
        }

    def _write(self, row: ExchangeRow, records: list[dict[str, Any]], *, neighbour: bool) -> None:
        parsed = [json.loads(record["record"]) for record in records]
        facts = exchange_facts(parsed)
        if facts["id"] != row.facts["id"]:
            raise IndexUnusableError(
                f"the index assigns records of exchange {facts['id']} to exchange {row.facts['id']}: `proofgate "
                "audit index --rebuild` rebuilds the index",
                "index_damaged",
            )
        if not neighbour and not matches_filter(self._asked, facts, row.position[0]):
            # The exchange ended after the start of this export, so its end is not covered and the filter does
            # not match it.
            return
        line = {"id": facts["id"], **({"neighbour": True} if neighbour else {}), "records": records}
        self._exchanges.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        self.written.records += len(records)
        for record in records:
            self._logs[record["origin"]] += 1
        if neighbour:
            self.written.neighbours += 1
            return
        self.written.exchanges += 1
        self._counts.add(parsed, facts)
        self._csv.write(csv_row(facts))
        number = facts["tenant_seq"]
        if number is not None:
            of = self._numbered.setdefault(
                (facts["tenant"], records[0]["origin"]), NumberRange(number, number)
            )
            if of.exchanges == 0 or number < of.first:
                of.first, of.boundary_times[0] = number, row.position[0]
            if of.exchanges == 0 or number > of.last:
                of.last, of.boundary_times[1] = number, row.position[0]
            of.exchanges += 1

    def _neighbours(self) -> Iterable[ExchangeRow]:
        """The tenant's requests next to the exported ones. They show that no request at the edges is left
        out."""
        for (tenant, origin), of in sorted(self._numbered.items()):
            for number, near in ((of.first - 1, of.boundary_times[0]), (of.last + 1, of.boundary_times[1])):
                found = self._questions.find_admission(tenant, origin, number, near) if number else None
                if found is not None:
                    yield found
