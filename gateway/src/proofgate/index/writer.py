"""Writes an index: the rows of a batch into the files of their days, then the position of the batch into the
catalogue.

A row is identified by the position of its record. So a row that is written again, because the process was
killed before the catalogue was written, replaces itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import sqlite3
from collections import OrderedDict, defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Self

from proofgate.folder_sync import sync_folder
from proofgate.index import schema, sums
from proofgate.index.days import DayWriter, LateRecordUpdate
from proofgate.index.errors import IndexUnusableError

if TYPE_CHECKING:
    from proofgate import _core

#: Maximum number of day files that are open.
_MAX_OPEN_DAYS = 8
#: Maximum number of names with a cached number.
_MAX_CACHED_NAMES = 20_000
#: Size by which the core recognises that a log has ended.
LOG_ENDED = (1 << 64) - 1
_NEW_CATALOGUE = "catalogue.new"


class IndexWriter:
    """The only writer of an index. Not thread-safe. Raises IndexUnusableError."""

    def __init__(self, directory: Path, keys: Collection[str], lock: int) -> None:
        self.directory = directory
        self._lock = lock
        self._catalogue = schema.open_catalogue(directory, write=True)
        meta = schema.read_meta(self._catalogue)
        if meta.get("ledger") not in keys:
            self._catalogue.close()
            raise IndexUnusableError(
                f"{directory} is the index of {meta.get('ledger')}, not of this ledger", "index_foreign"
            )
        self._generation = str(meta["generation"])
        self._version = int(meta["version"])
        self._pruned_before = int(meta["pruned_before"]) if "pruned_before" in meta else None
        self._listed = {day for (day,) in self._catalogue.execute("SELECT day FROM day")}
        self._days: OrderedDict[int, DayWriter] = OrderedDict()
        self._names: dict[str, int] = {}
        self._remove_unlisted()

    @classmethod
    def open(
        cls, directory: Path, ledger_key: str, *, line: Collection[str] = (), rebuild: bool = False
    ) -> Self:
        """Opens an existing index, or creates one if there is none or with `rebuild`.

        An existing index may have been created with any key in `line`, the ledger's chain of keys.
        """
        own = ledger_key.split("\n", 1)[0].strip()
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(directory / schema.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise IndexUnusableError(f"{directory} cannot be used: {error.strerror}", "index_io") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if rebuild or not (directory / schema.CATALOGUE).is_file():
                _create_catalogue(directory, own)
            return cls(directory, {own, *line}, lock)
        except BlockingIOError:
            os.close(lock)
            raise IndexUnusableError(
                f"another process writes the index in {directory}", "index_busy"
            ) from None
        except (OSError, sqlite3.Error) as error:
            os.close(lock)
            raise IndexUnusableError(f"cannot create the index in {directory}: {error}", "index_io") from None
        except BaseException:
            os.close(lock)
            raise

    def close(self) -> None:
        """Closes every file."""
        for day in self._days.values():
            day.connection.close()
        self._days.clear()
        self._catalogue.close()
        os.close(self._lock)

    def indexed_sizes(self) -> dict[str, int]:
        """The number of records of each log in the index, by origin; LOG_ENDED for a completely read log."""
        logs = self._catalogue.execute("SELECT origin, size, final FROM log")
        return {
            origin: LOG_ENDED if final is not None and size >= final else size for origin, size, final in logs
        }

    def resume_position(self, origin: str) -> str | None:
        """The position at which the reading of a log continues; None for a log that was not read."""
        row = self._catalogue.execute("SELECT place FROM log WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else row[0]

    def apply(self, origin: str, note: str, batch: _core.ExchangeBatch) -> None:
        """Writes a batch of a log, read up to the checkpoint of `note`."""
        try:
            self._catalogue.execute("BEGIN IMMEDIATE")
            self._apply(origin, note, batch)
            self._catalogue.execute("COMMIT")
        except BaseException as error:
            self._roll_back()
            if isinstance(error, sqlite3.Error | OSError):
                raise IndexUnusableError(f"{self.directory} cannot be written: {error}", "index_io") from None
            raise
        self._version += 1
        while len(self._days) > _MAX_OPEN_DAYS:
            self._days.popitem(last=False)[1].connection.close()

    def _apply(self, origin: str, note: str, batch: _core.ExchangeBatch) -> None:
        catalogue, log = self._catalogue, self._log_id(origin)
        begun = [(log, seq, ts) for seq, ts in batch.open_admissions() if self._is_retained(ts)]
        catalogue.executemany("INSERT OR REPLACE INTO open VALUES (?, ?, ?)", begun)
        effects = self._effects(origin, log, batch)
        added, shard = sums.SumsBatch(self._name_id), origin.split("/")[-2]
        closed: list[tuple[int, int]] = []
        kept = [day for day in batch.days() if self._is_day_retained(day)]
        for day in sorted({*kept, *effects}):
            writing = self._day(day)
            writing.connection.execute("BEGIN IMMEDIATE")
            if day in kept:
                judged = writing.add(batch, day, log, self._version + 1)
                added.add_batch(batch, day, log, shard, judged)
            for effect in effects.get(day, []):
                admission = (effect.log, effect.seq)
                of = None if admission in closed else writing.apply_late_record(effect)
                if of is not None and effect.late_record["kind"] == "end":
                    closed.append(admission)
                    added.add_end(of, shard, effect.late_record)
            writing.connection.execute("COMMIT")
        added.write(catalogue)
        catalogue.executemany("DELETE FROM open WHERE log = ? AND seq = ?", closed)
        catalogue.execute("DELETE FROM early WHERE log = ? AND seq < ?", (log, batch.size))
        catalogue.execute(
            "UPDATE log SET size = ?, place = ?, note = ?, final = coalesce(?, final) WHERE id = ?",
            (batch.size, batch.place, note, batch.size if batch.sealed else None, log),
        )
        if batch.configuration_change is not None:
            since, digest = batch.configuration_change
            catalogue.execute(
                "UPDATE log SET configuration = ?, configured = ? WHERE id = ?", (digest, since, log)
            )
        for incarnation, size in batch.ended:
            other = self._log_id(_sibling_origin(origin, incarnation))
            catalogue.execute("UPDATE log SET final = ? WHERE id = ?", (min(size, (1 << 63) - 1), other))
        catalogue.execute("UPDATE meta SET value = ? WHERE name = 'version'", (self._version + 1,))

    def _effects(
        self, origin: str, log: int, batch: _core.ExchangeBatch
    ) -> dict[int, list[LateRecordUpdate]]:
        """The updates of existing rows, by day. Updates of admissions that were not read yet are stored for
        later."""
        effects: dict[int, list[LateRecordUpdate]] = defaultdict(list)
        early = self._catalogue.execute(
            "SELECT seq, by_log, late FROM early WHERE log = ? AND seq < ? ORDER BY by_log, by_seq",
            (log, batch.size),
        )
        found = [(log, seq, by_log, json.loads(late)) for seq, by_log, late in early]
        for text in batch.late_records():
            late = json.loads(text)
            admitted = late["incarnation"]
            of = log if admitted is None else self._log_id(_sibling_origin(origin, admitted))
            found.append((of, late["admission"], log, late))
        for of, seq, by_log, late in found:
            row = self._catalogue.execute(
                "SELECT ts FROM open WHERE log = ? AND seq = ?", (of, seq)
            ).fetchone()
            if row is not None:
                effects[schema.day_of(row[0])].append(LateRecordUpdate(row[0], of, seq, by_log, late))
            elif of != log and seq >= self._log_size(of):
                self._catalogue.execute(
                    "INSERT OR REPLACE INTO early VALUES (?, ?, ?, ?, ?)",
                    (of, seq, by_log, late["seq"], json.dumps(late)),
                )
            # Otherwise the exchange already has an end, or its day was removed.
        return effects

    def newest_day(self) -> int | None:
        """The newest day with exchanges; None without any."""
        return max(self._listed, default=None)

    def prune(self, before: int) -> int:
        """Removes the days before a day permanently. Returns their number."""
        before = max(before, self._pruned_before or before)
        gone = [day for day in self._listed if day < before]
        try:
            self._catalogue.execute("BEGIN IMMEDIATE")
            self._catalogue.execute("INSERT OR REPLACE INTO meta VALUES ('pruned_before', ?)", (before,))
            self._catalogue.execute("DELETE FROM day WHERE day < ?", (before,))
            self._catalogue.execute("DELETE FROM open WHERE ts < ?", (before * 86_400_000_000,))
            sums.prune(self._catalogue, before)
            self._catalogue.execute("COMMIT")
            self._pruned_before = before
            self._listed.difference_update(gone)
            for day in [day for day in self._days if day < before]:
                self._days.pop(day).connection.close()
            self._remove_unlisted()
        except (sqlite3.Error, OSError) as error:
            self._roll_back()
            raise IndexUnusableError(f"{self.directory} cannot be written: {error}", "index_io") from None
        return len(gone)

    def _log_id(self, origin: str) -> int:
        row = self._catalogue.execute("SELECT id FROM log WHERE origin = ?", (origin,)).fetchone()
        if row is None:
            return int(
                self._catalogue.execute("INSERT INTO log(origin) VALUES (?)", (origin,)).lastrowid or 0
            )
        return int(row[0])

    def _name_id(self, text: str) -> int:
        """The number of a tenant, model or shard in the catalogue."""
        number = self._names.get(text)
        if number is None:
            if len(self._names) >= _MAX_CACHED_NAMES:
                self._names.clear()
            self._catalogue.execute("INSERT OR IGNORE INTO name(text) VALUES (?)", (text,))
            row = self._catalogue.execute("SELECT id FROM name WHERE text = ?", (text,)).fetchone()
            number = self._names[text] = int(row[0])
        return number

    def _log_size(self, log: int) -> int:
        return int(self._catalogue.execute("SELECT size FROM log WHERE id = ?", (log,)).fetchone()[0])

    def _is_retained(self, ts: int) -> bool:
        return self._is_day_retained(schema.day_of(ts))

    def _is_day_retained(self, day: int) -> bool:
        return self._pruned_before is None or day >= self._pruned_before

    def _day(self, day: int) -> DayWriter:
        if day in self._days:
            self._days.move_to_end(day)
            return self._days[day]
        if day in self._listed:
            connection = schema.open_day(self.directory, day, self._generation, write=True)
        else:
            meta: dict[str, str | int] = {"schema": schema.SCHEMA, "generation": self._generation}
            connection = schema.create(schema.day_path(self.directory, day), schema.DAY_TABLES, meta)
            sync_folder(self.directory)
        self._catalogue.execute("INSERT OR IGNORE INTO day VALUES (?)", (day,))
        self._listed.add(day)
        self._days[day] = DayWriter(connection)
        return self._days[day]

    def _roll_back(self) -> None:
        """Rolls back uncommitted changes, and clears cached values of them."""
        for day in self._days.values():
            # Closing a file rolls back uncommitted changes.
            with contextlib.suppress(sqlite3.Error):
                day.connection.close()
        self._days.clear()
        self._names.clear()
        with contextlib.suppress(sqlite3.Error):
            if self._catalogue.in_transaction:
                self._catalogue.execute("ROLLBACK")
            self._listed = {day for (day,) in self._catalogue.execute("SELECT day FROM day")}

    def _remove_unlisted(self) -> None:
        """Removes files of days that are not in the catalogue. They will be written again, or are not
        needed."""
        listed = {schema.day_name(day) for day in self._listed}
        for path in self.directory.iterdir():
            if schema.DAY_FILE.fullmatch(path.name) and path.name[:10] not in listed:
                path.unlink(missing_ok=True)


def _create_catalogue(directory: Path, ledger_key: str) -> None:
    """Creates a new catalogue and replaces an existing one. The record of pruned days is retained."""
    meta: dict[str, str | int] = {
        "schema": schema.SCHEMA,
        "ledger": ledger_key,
        "generation": secrets.token_hex(8),
        "version": 0,
    }
    path = directory / schema.CATALOGUE
    if path.is_file():
        with contextlib.suppress(IndexUnusableError):
            before = schema.connect(path, write=True)
            pruned = schema.read_meta(before).get("pruned_before")
            before.close()
            if isinstance(pruned, int):
                meta["pruned_before"] = pruned
    schema.create(directory / _NEW_CATALOGUE, schema.CATALOGUE_TABLES, meta).close()
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    (directory / _NEW_CATALOGUE).replace(path)
    sync_folder(directory)


def _sibling_origin(origin: str, incarnation: str) -> str:
    """Returns the origin of another log of the same shard."""
    return f"{origin.rpartition('/')[0]}/{incarnation}"
