"""The progress of a stream of events, in an SQLite file with one row for each log."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path

_FOLDER = "siem"
_TABLES = """
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log(origin TEXT PRIMARY KEY, note TEXT NOT NULL, place TEXT,
  size INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
"""


class CursorError(Exception):
    """The cursor's file cannot be used. The message says why."""

    code = "siem_cursor"


class EventCursor:
    """The progress of a stream, and the newest note of each log. For use by one thread at a time."""

    def __init__(self, state: Path, sink: str, ledger_key: str) -> None:
        """Opens or creates the file of a sink. Each ledger has one file, regardless of which of its keys is
        given.

        Raises CursorError.
        """
        name = f"{sink}\n{ledger_key.split('+', 1)[0]}"
        folder = state / _FOLDER
        self._path = path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.sqlite"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.executescript(_TABLES)
            self._file.execute("INSERT OR IGNORE INTO meta VALUES ('sink', ?)", (name,))
        except (sqlite3.Error, OSError) as error:
            message = f"{path} cannot be used: {error}. If you remove this file, all exchanges are sent again"
            raise CursorError(message) from None

    def update_notes(self, notes: list[tuple[str, str]]) -> None:
        """Stores the newest notes of logs, as pairs of origin and note."""
        with self._file:
            self._file.execute("BEGIN")
            self._file.executemany(
                "INSERT INTO log(origin, note) VALUES (?, ?)"
                " ON CONFLICT(origin) DO UPDATE SET note = excluded.note WHERE note != excluded.note",
                notes,
            )

    def note(self, origin: str) -> str | None:
        """Returns the newest note of a log; None for an unknown log."""
        row = self._file.execute("SELECT note FROM log WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else str(row[0])

    def position(self, origin: str) -> tuple[str | None, int]:
        """Returns the position at which to continue in a log, and the number of its records that were
        sent."""
        row = self._file.execute("SELECT place, size FROM log WHERE origin = ?", (origin,)).fetchone()
        return (None, 0) if row is None else (row[0], row[1])

    def advance(self, origin: str, place: str, size: int) -> None:
        """Records durably that everything up to a position was sent."""
        self._file.execute("UPDATE log SET place = ?, size = ? WHERE origin = ?", (place, size, origin))

    def sent_counts(self) -> dict[str, int]:
        """Returns the number of sent records of each log, by origin. Thread-safe; empty while the file cannot
        be read."""
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=30)) as file:
                return dict(file.execute("SELECT origin, size FROM log"))
        except sqlite3.Error:
            return {}

    def close(self) -> None:
        """Closes the file."""
        with contextlib.suppress(sqlite3.Error):
            self._file.close()
