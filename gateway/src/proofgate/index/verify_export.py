"""Checks an export by the ledger's verifying key alone: its files, every record in it, and what is missing of
it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import tarfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from proofgate import _core
from proofgate.index.errors import IndexUnusableError
from proofgate.index.export import CSV, EXCHANGES, KIND, MANIFEST, NOTE, VERSION, WHOLE_FILTERS
from proofgate.index.facts import ATTRIBUTED, facts, matches
from proofgate.index.filter import Filter
from proofgate.index.show import CSV_COLUMNS, csv_head, csv_row

_AT_ONCE = 500
_MOST_MANIFEST = 256 << 20
#: An exchange has a handful of records of at most 64 KiB, escaped, with their paths.
_MOST_LINE = 16 << 20
_CHUNK = 1 << 20
_DAMAGED = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)


class ExportContradictedError(Exception):
    """The export is not what it says, or not what was signed."""


@dataclass
class Numbers:
    """The numbers of one tenant's admissions in one log, as stretches without a gap, and where the exported
    ones are."""

    seen: set[int] = field(default_factory=set)
    exported: set[int] = field(default_factory=set)


@dataclass
class Checked:
    """What an export showed."""

    manifest: dict[str, Any]
    signed_by: str | None
    exchanges: int = 0
    records: int = 0
    numbers: dict[tuple[str, str], Numbers] = field(default_factory=lambda: defaultdict(Numbers))
    refusals: set[tuple[str, int]] = field(default_factory=set)
    partial: int = 0
    """Exchanges whose end, or one of whose attempts, is not in it."""

    @property
    def claims_whole(self) -> bool:
        """Whether the question was one of which an export can show that no admission is missing between two
        others."""
        asked = self.manifest["filter"]
        return "tenant" in asked and asked.keys() <= WHOLE_FILTERS

    def gaps(self) -> dict[tuple[str, str], list[int]]:
        """The numbers that are missing between the first and the last admission of each tenant in each
        log."""
        found = {}
        for place, numbers in self.numbers.items():
            missing = len(range(min(numbers.seen), max(numbers.seen) + 1)) - len(numbers.seen)
            if missing:
                lacking = (n for n in range(min(numbers.seen), max(numbers.seen)) if n not in numbers.seen)
                found[place] = list(islice(lacking, 10))
        return found


class _Files:
    """The files of an export, in a directory or an archive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tar = None if path.is_dir() else tarfile.open(path)  # noqa: SIM115 - closed with the files

    def close(self) -> None:
        if self._tar is not None:
            self._tar.close()

    def open(self, name: str) -> IO[bytes] | None:
        """A file, or None when it is not there. Nothing is unpacked."""
        if self._tar is None:
            path = self._path / name
            return path.open("rb") if path.is_file() else None
        try:
            return self._tar.extractfile(name)
        except KeyError:
            return None


def verify(path: Path, key: str, signer: str | None = None) -> Checked:
    """Checks an export in a directory or an archive; with `signer`, also that this key signed it.

    Raises ExportContradictedError, IndexUnusableError (`bad_export`) for what is none, OSError, ValueError
    for a key that is none.
    """
    with _opened(path) as files:
        content = _read(files, MANIFEST)
        manifest = _manifest(content)
        signed_by = None
        if signer is not None:
            note = _read(files, NOTE)
            try:
                _core.verify_export(note.decode(), signer, hashlib.sha256(content).digest())
            except (_core.ProofError, UnicodeDecodeError) as error:
                raise ExportContradictedError(
                    f"{NOTE} is not by this key over this manifest: {error}"
                ) from None
            signed_by = signer.partition("+")[0]
        for name in (EXCHANGES, CSV):
            _require_digest(files, name, manifest)
        checked = Checked(manifest, signed_by)
        key = "\n".join([key, *manifest.get("key_successions", [])])
        notes = _notes(manifest, key)
        neighbours = 0
        columns = _columns(manifest)
        with _required(files, EXCHANGES) as lines, _required(files, CSV) as table:
            _require_same(_line(table), csv_head(columns))
            while part := list(islice(_lines(lines), _AT_ONCE)):
                _require_proved(part, notes, key)
                for line in part:
                    told = _exchange(line, Filter(**manifest["filter"]), checked)
                    if line.get("neighbour"):
                        neighbours += 1
                    else:
                        checked.exchanges += 1
                        _require_same(_line(table), csv_row(told, columns))
            if _line(table):
                raise ExportContradictedError(f"{CSV} has more rows than there are exchanges")
        for name, count in (
            ("exchanges", checked.exchanges),
            ("records", checked.records),
            ("neighbours", neighbours),
        ):
            if manifest[name] != count:
                raise ExportContradictedError(
                    f"the manifest counts {manifest[name]} {name}, and {count} are there"
                )
        return checked


@contextmanager
def _opened(path: Path) -> Iterator[_Files]:
    try:
        files = _Files(path)
    except _DAMAGED as error:
        raise IndexUnusableError(f"{path} is no export: {error}", "bad_export") from None
    try:
        yield files
    except _DAMAGED as error:
        raise ExportContradictedError(f"the archive is damaged: {error}") from None
    finally:
        files.close()


def _required(files: _Files, name: str) -> IO[bytes]:
    file = files.open(name)
    if file is None:
        raise IndexUnusableError(f"this is no export: it has no {name}", "bad_export")
    return file


def _read(files: _Files, name: str) -> bytes:
    with _required(files, name) as file:
        content = file.read(_MOST_MANIFEST + 1)
    if len(content) > _MOST_MANIFEST:
        raise IndexUnusableError(f"{name} is larger than any", "bad_export")
    return content


def _manifest(content: bytes) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(content)
        asked = Filter(**manifest["filter"])
        well_formed = (
            manifest["v"] in (1, VERSION)
            and manifest["kind"] == KIND
            and all(_is_number(number) for number in (asked.since, asked.until, asked.min_cost))
            and all(isinstance(manifest[name], int) for name in ("exchanges", "records", "neighbours"))
            and all(isinstance(log["checkpoint"], str) for log in manifest["logs"])
            and all(isinstance(manifest["files"][name]["sha256"], str) for name in (EXCHANGES, CSV))
            and all(isinstance(note, str) for note in manifest.get("key_successions", []))
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        well_formed = False
    if not well_formed:
        raise IndexUnusableError(
            f"this is no export of this version: {MANIFEST} has another form", "bad_export"
        )
    return manifest


def _columns(manifest: dict[str, Any]) -> tuple[str, ...]:
    if manifest["v"] == VERSION:
        return CSV_COLUMNS
    return tuple(name for name in CSV_COLUMNS if name not in ATTRIBUTED)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int) and value >= 0)


def _require_digest(files: _Files, name: str, manifest: dict[str, Any]) -> None:
    digest = hashlib.sha256()
    with _required(files, name) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != manifest["files"][name]["sha256"]:
        raise ExportContradictedError(f"{name} is not the file that the manifest names")


def _notes(manifest: dict[str, Any], key: str) -> dict[str, str]:
    """The checkpoints, by the origins that they themselves state."""
    notes = {}
    for log in manifest["logs"]:
        try:
            signed = json.loads(_core.verify_checkpoint(log["checkpoint"], key))
        except _core.ProofgateError as error:
            raise ExportContradictedError(f"a checkpoint is refused: {error}") from None
        notes[signed["origin"]] = log["checkpoint"]
    return notes


def _lines(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    while text := _line(file):
        try:
            line: dict[str, Any] = json.loads(text)
            records = line["records"]
            well_formed = bool(records) and all(
                isinstance(record[name], kind)
                for record in records
                for name, kind in (("origin", str), ("index", int), ("record", str), ("path", list))
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            well_formed = False
        if not well_formed:
            raise ExportContradictedError(f"a line of {EXCHANGES} is no exchange")
        yield line


def _line(file: IO[bytes]) -> str:
    content = file.readline(_MOST_LINE)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ExportContradictedError("a line is not UTF-8") from None


def _require_same(found: str, expected: str) -> None:
    if found != expected:
        raise ExportContradictedError(
            f"{CSV} says {found.strip()!r} where the records say {expected.strip()!r}"
        )


def _require_proved(lines: list[dict[str, Any]], notes: dict[str, str], key: str) -> None:
    by_log: dict[str, list[tuple[int, bytes, list[bytes]]]] = defaultdict(list)
    for line in lines:
        for record in line["records"]:
            try:
                path = [base64.b64decode(entry, validate=True) for entry in record["path"]]
            except (ValueError, TypeError):
                path = []
            by_log[record["origin"]].append((record["index"], record["record"].encode(), path))
    for origin, records in by_log.items():
        if origin not in notes:
            raise ExportContradictedError(f"there is no checkpoint of {origin}")
        try:
            _core.verify_log_records(notes[origin], key, records)
        except (_core.ProofError, ValueError, OverflowError) as error:
            raise ExportContradictedError(f"a record is not proved: {error}") from None


def _exchange(line: dict[str, Any], asked: Filter, checked: Checked) -> dict[str, Any]:
    """What the records of a line say, which are proved; they have to be those of one exchange that was asked
    for."""
    records = line["records"]
    try:
        parsed = [json.loads(record["record"]) for record in records]
        told = facts(parsed)
        begun = parsed[0]["ts"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExportContradictedError(
            f"the records of {line.get('id')!r} are not those of one exchange: {error}"
        ) from None
    origin, number = records[0]["origin"], told["tenant_seq"]
    for record, content in zip(records, parsed, strict=True):
        if content["id"] != line.get("id"):
            raise ExportContradictedError(f"{line.get('id')!r} has a record of {content['id']!r}")
        if record is records[0]:
            continue
        admitted = (
            f"{record['origin'].rpartition('/')[0]}/{content['incarnation']}"
            if content.get("incarnation")
            else record["origin"]
        )
        if (admitted, content["admission"]) != (origin, records[0]["index"]):
            raise ExportContradictedError(f"a record of {line['id']!r} is of another admission")
    checked.records += len(records)
    neighbour = bool(line.get("neighbour"))
    if matches(asked, told, begun) == neighbour or (neighbour and told["tenant"] != asked.tenant):
        raise ExportContradictedError(f"{line['id']!r} is not what was asked for")
    place = (origin, records[0]["index"])
    numbers = checked.numbers[told["tenant"], origin] if number is not None else None
    if place in checked.refusals or (numbers is not None and number in numbers.seen):
        raise ExportContradictedError(f"{line['id']!r} is there twice")
    if numbers is None:
        checked.refusals.add(place)
    else:
        numbers.seen.add(number)
        if not neighbour:
            numbers.exported.add(number)
            checked.partial += not _is_whole(parsed)
    return told


def _is_whole(records: list[dict[str, Any]]) -> bool:
    """Whether the end of an admitted exchange is there, and as many attempts as that counts."""
    attempts = sum(record["kind"] == "attempt" for record in records)
    end = next((record for record in records if record["kind"] in ("completion", "aborted")), None)
    return end is not None and (end["kind"] == "aborted" or end.get("attempts", 1) == attempts + 1)
