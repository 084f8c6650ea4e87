"""Checks an export with only the ledger's verifying key: its files, all its records, and missing parts."""

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
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any, TypeGuard

from proofgate import _core
from proofgate.index.checked_export import (
    CheckedExport,
    ExportContradictedError,
    compare_claims,
    compare_counts,
    require_ledger,
)
from proofgate.index.errors import IndexUnusableError
from proofgate.index.export import CSV, EXCHANGES, KIND, MANIFEST, NOTE, VERSION
from proofgate.index.export_counts import COUNT_LABELS
from proofgate.index.facts import ATTRIBUTION_FIELDS, exchange_facts, matches_filter
from proofgate.index.filter import Filter
from proofgate.index.row_formatting import CSV_COLUMNS, csv_header, csv_row, quote_leading_formula

_BATCH_LINES = 500
_MAX_MANIFEST_BYTES = 256 << 20
#: Maximum bytes of a line: a few escaped records of at most 64 KiB each, with their paths.
_MAX_LINE_BYTES = 16 << 20
_CHUNK = 1 << 20
#: Maximum of valid times and costs.
_MAX_INTEGER = 1 << 53
#: A count that exports of version 3 do not have.
_DENIED_COUNT = "verdict denied"
#: Columns that exports of version 4 do not have.
_VERSION_5_COLUMNS = {"key_name", "end_user_name", "client_address"}
_DAMAGED_ERRORS = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)


class _ExportFiles:
    """The files of an export, in a directory or an archive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tar = None if path.is_dir() else tarfile.open(path)  # noqa: SIM115 - closed with the files

    def close(self) -> None:
        if self._tar is not None:
            self._tar.close()

    def open(self, name: str) -> IO[bytes] | None:
        """Opens a file, or returns None if it does not exist. Nothing is unpacked."""
        if self._tar is None:
            path = self._path / name
            return path.open("rb") if path.is_file() else None
        try:
            member = self._tar.getmember(name)
        except KeyError:
            return None
        # A link could lead anywhere, even to itself.
        return self._tar.extractfile(member) if member.isreg() else None


def verify(path: Path, key: str, signer: str | None = None) -> CheckedExport:
    """Checks an export in a directory or an archive; with `signer`, also that this key signed it.

    Raises ExportContradictedError, IndexUnusableError (`bad_export`) if it is not an export, OSError,
    ValueError for an invalid key.
    """
    with _open_export(path) as files:
        content = _read_file(files, MANIFEST)
        manifest = _manifest(content)
        signed_by = None
        if signer is not None:
            note = _read_file(files, NOTE)
            try:
                _core.verify_export(note.decode(), signer, hashlib.sha256(content).digest())
            except UnicodeDecodeError as error:
                raise ExportContradictedError(f"{NOTE} is not a signed note: {error}") from None
            except _core.ProofError as error:
                raise ExportContradictedError(
                    f"{NOTE} does not sign this manifest with this key: {error} [{error.code}]"
                ) from None
            signed_by = signer.partition("+")[0]
        for name in (EXCHANGES, CSV):
            _require_digest(files, name, manifest)
        require_ledger(manifest, key)
        checked = CheckedExport(manifest, signed_by)
        key = "\n".join([key, *manifest.get("key_successions", [])])
        notes = _notes(manifest, key)
        neighbours = 0
        columns = _columns(manifest)
        quote = None if manifest["v"] > 2 else quote_leading_formula
        with _require_file(files, EXCHANGES) as lines, _require_file(files, CSV) as table:
            _require_same(_line(table), csv_header(columns))
            while part := list(islice(_lines(lines), _BATCH_LINES)):
                _require_proofs(part, notes, key)
                for line in part:
                    told = _exchange(line, Filter(**manifest["filter"]), checked)
                    if line.get("neighbour"):
                        neighbours += 1
                    else:
                        checked.exchanges += 1
                        _require_same(_line(table), csv_row(told, columns, quote=quote))
            if _line(table):
                raise ExportContradictedError(f"{CSV} has more rows than there are exchanges")
        found = {"exchanges": checked.exchanges, "records": checked.records, "neighbours": neighbours}
        compare_counts({name: manifest[name] for name in found}, found, {}, checked)
        compare_claims(manifest, checked)
        return checked


@contextmanager
def _open_export(path: Path) -> Iterator[_ExportFiles]:
    try:
        files = _ExportFiles(path)
    except _DAMAGED_ERRORS as error:
        raise IndexUnusableError(f"{path} is not an export: {error}", "bad_export") from None
    try:
        yield files
    except _DAMAGED_ERRORS as error:
        raise ExportContradictedError(f"the archive is damaged: {error}") from None
    finally:
        files.close()


def _require_file(files: _ExportFiles, name: str) -> IO[bytes]:
    file = files.open(name)
    if file is None:
        raise IndexUnusableError(f"this is not an export: {name} is missing", "bad_export")
    return file


def _read_file(files: _ExportFiles, name: str) -> bytes:
    with _require_file(files, name) as file:
        content = file.read(_MAX_MANIFEST_BYTES + 1)
    if len(content) > _MAX_MANIFEST_BYTES:
        raise IndexUnusableError(f"{name} is too large for an export", "bad_export")
    return content


def _manifest(content: bytes) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(content)
        asked = Filter(**manifest["filter"])
        well_formed = (
            manifest["v"] in range(1, VERSION + 1)
            and (manifest["v"] < 3 or _has_valid_claims(manifest))
            and manifest["kind"] == KIND
            and _is_filter(asked)
            and all(isinstance(manifest[name], int) for name in ("exchanges", "records", "neighbours"))
            and all(isinstance(log["checkpoint"], str) for log in manifest["logs"])
            and all(isinstance(log["origin"], str) and _is_count(log["records"]) for log in manifest["logs"])
            and all(map(_is_tenant, manifest["tenants"]))
            and isinstance(manifest["ledger"], str)
            and all(isinstance(manifest["files"][name]["sha256"], str) for name in (EXCHANGES, CSV))
            and all(isinstance(note, str) for note in manifest.get("key_successions", []))
            and all(isinstance(origin, str) for origin in manifest.get("unreadable", []))
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        well_formed = False
    if not well_formed:
        raise IndexUnusableError(
            f"this version cannot read the export: {MANIFEST} has an unknown format", "bad_export"
        )
    return manifest


def _columns(manifest: dict[str, Any]) -> tuple[str, ...]:
    without = {1: {*_VERSION_5_COLUMNS, *ATTRIBUTION_FIELDS}, VERSION: set()}.get(
        manifest["v"], _VERSION_5_COLUMNS
    )
    return tuple(name for name in CSV_COLUMNS if name not in without)


def _is_filter(asked: Filter) -> bool:
    told = asked.to_dict()
    numbers = {name: told.pop(name, None) for name in ("since", "until", "min_cost")}
    texts = all(isinstance(value, str) for name, value in told.items() if name != "newest")
    return texts and told.get("newest", True) is True and all(map(_is_number, numbers.values()))


def _is_number(value: object) -> bool:
    return value is None or (_is_count(value) and value < _MAX_INTEGER)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_tenant(of: dict[str, Any]) -> bool:
    texts = all(isinstance(of[name], str) for name in ("tenant", "origin"))
    return texts and all(_is_count(of[name]) for name in ("first", "last", "exchanges"))


def _has_valid_claims(manifest: dict[str, Any]) -> bool:
    counts, names = manifest["counts"], manifest["left_out"]
    return (
        counts.keys() == COUNT_LABELS.keys() - ({_DENIED_COUNT} if manifest["v"] == 3 else set())
        and all(map(_is_count, counts.values()))
        and isinstance(names, list)
        and all(isinstance(name, str) for name in names)
    )


def _require_digest(files: _ExportFiles, name: str, manifest: dict[str, Any]) -> None:
    digest, size = hashlib.sha256(), 0
    with _require_file(files, name) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    length = manifest["files"][name].get("bytes", size)
    if digest.hexdigest() != manifest["files"][name]["sha256"] or length != size:
        raise ExportContradictedError(f"{name} does not match the manifest")


def _notes(manifest: dict[str, Any], key: str) -> dict[str, str]:
    """The verified checkpoints, by the origins in them."""
    notes = {}
    for log in manifest["logs"]:
        try:
            signed = json.loads(_core.verify_checkpoint(log["checkpoint"], key))
        except _core.ProofgateError as error:
            raise ExportContradictedError(f"a checkpoint is not valid: {error} [{error.code}]") from None
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
            raise ExportContradictedError(f"a line of {EXCHANGES} is not an exchange")
        yield line


def _line(file: IO[bytes]) -> str:
    content = file.readline(_MAX_LINE_BYTES)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ExportContradictedError("a line is not UTF-8") from None


def _require_same(found: str, expected: str) -> None:
    if found != expected:
        raise ExportContradictedError(
            f"{CSV} has {found.strip()!r}, but the records have {expected.strip()!r}"
        )


def _require_proofs(lines: list[dict[str, Any]], notes: dict[str, str], key: str) -> None:
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
            raise ExportContradictedError(f"the export has no checkpoint of {origin}")
        try:
            _core.verify_log_records(notes[origin], key, records)
        except (_core.ProofError, ValueError, OverflowError) as error:
            raise ExportContradictedError(f"a record is not proved: {error}") from None


def _exchange(line: dict[str, Any], asked: Filter, checked: CheckedExport) -> dict[str, Any]:
    """The facts in a line's records, which are already proven. The records must belong to one exchange that
    matches the filter."""
    records = line["records"]
    try:
        parsed = [json.loads(record["record"]) for record in records]
        told = exchange_facts(parsed)
        if checked.manifest["v"] < 4 and told["verdict"] == "denied":
            told["verdict"] = "refused"
        begun = parsed[0]["ts"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExportContradictedError(
            f"the records of exchange {line.get('id')!r} do not form one exchange: {error}"
        ) from None
    origin, number = records[0]["origin"], told["tenant_seq"]
    # A duplicate record could replace another attempt.
    places = [(record["origin"], record["index"]) for record in records]
    if any(after <= before for before, after in pairwise(places)):
        raise ExportContradictedError(
            f"exchange {line.get('id')!r} has a record twice, or has records in the wrong order"
        )
    for record, content in zip(records, parsed, strict=True):
        if content["id"] != line.get("id"):
            raise ExportContradictedError(
                f"exchange {line.get('id')!r} has a record of exchange {content['id']!r}"
            )
        if record is records[0]:
            continue
        admitted = (
            f"{record['origin'].rpartition('/')[0]}/{content['incarnation']}"
            if content.get("incarnation")
            else record["origin"]
        )
        if (admitted, content["admission"]) != (origin, records[0]["index"]):
            raise ExportContradictedError(f"a record of exchange {line['id']!r} belongs to another admission")
    checked.records += len(records)
    checked.by_log.update(record["origin"] for record in records)
    neighbour = bool(line.get("neighbour"))
    if matches_filter(asked, told, begun) == neighbour or (neighbour and told["tenant"] != asked.tenant):
        raise ExportContradictedError(f"exchange {line['id']!r} does not match the filter")
    [place, *_] = places
    if not neighbour:
        checked.counts.add(parsed, told)
    numbers = checked.numbers[told["tenant"], origin] if number is not None else None
    if place in checked.refusals or (numbers is not None and number in numbers.seen):
        raise ExportContradictedError(f"exchange {line['id']!r} appears twice")
    if numbers is None:
        checked.refusals.add(place)
    else:
        numbers.seen.add(number)
        if not neighbour:
            numbers.exported.add(number)
            checked.incomplete_exchanges += not _is_complete(parsed)
    return told


def _is_complete(records: list[dict[str, Any]]) -> bool:
    """Whether the records include the end of an exchange and the number of attempts in it. A denied request
    needs no end."""
    if records[0]["kind"] == "rejection":
        return True
    attempts = sum(record["kind"] == "attempt" for record in records)
    end = next((record for record in records if record["kind"] in ("completion", "aborted")), None)
    return end is not None and (end["kind"] == "aborted" or end.get("attempts", 1) == attempts + 1)
