"""How far a stream of events is, in a file of SQLite: one row for each log."""

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
    """The file cannot be used. Says why."""

    code = "siem_cursor"


class EventCursor:
    """What was sent, and the newest note of each log. One thread uses it at a time."""

    def __init__(self, state: Path, sink: str, ledger_key: str) -> None:
        """Opens the file of a sink, or makes it: one for each ledger, whichever of its keys is given.

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
        """Takes the newest notes of logs, by origin."""
        with self._file:
            self._file.execute("BEGIN")
            self._file.executemany(
                "INSERT INTO log(origin, note) VALUES (?, ?)"
                " ON CONFLICT(origin) DO UPDATE SET note = excluded.note WHERE note != excluded.note",
                notes,
            )

    def note(self, origin: str) -> str | None:
        """The newest note of a log; None of one that is not known."""
        row = self._file.execute("SELECT note FROM log WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else str(row[0])

    def position(self, origin: str) -> tuple[str | None, int]:
        """Where to go on in a log, and how many records of it were sent."""
        row = self._file.execute("SELECT place, size FROM log WHERE origin = ?", (origin,)).fetchone()
        return (None, 0) if row is None else (row[0], row[1])

    def advance(self, origin: str, place: str, size: int) -> None:
        """Everything up to a place was sent. On the disk when it returns."""
        self._file.execute("UPDATE log SET place = ?, size = ? WHERE origin = ?", (place, size, origin))

    def sent_counts(self) -> dict[str, int]:
        """How many records of each log were sent, by origin. For any thread; empty while that cannot be
        read."""
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=30)) as file:
                return dict(file.execute("SELECT origin, size FROM log"))
        except sqlite3.Error:
            return {}

    def close(self) -> None:
        """Closes the file."""
        with contextlib.suppress(sqlite3.Error):
            self._file.close()
