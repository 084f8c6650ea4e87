"""The files of an index: `catalogue.sqlite`, and `YYYY-MM-DD.sqlite` for each day (UTC) on which exchanges
started.

The catalogue contains the position up to which each log was read, and is written last. Rows in a day's file
after this position belong to a future version: no query sees them, and they are written again.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import urllib.parse
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from proofgate.index.errors import IndexUnusableError

#: Version of the schema. An index with another version must be rebuilt.
SCHEMA = 10
CATALOGUE = "catalogue.sqlite"
LOCK = "lock"
#: Value of SQLite's `PRAGMA synchronous`. FULL: each commit is on disk before the catalogue, which is written
#: last, refers to it.
SQLITE_SYNCHRONOUS = "FULL"
DAY_FILE = re.compile(r"\d{4}-\d{2}-\d{2}\.sqlite(-wal|-shm|-journal)?")

#: Verdicts, by the number in a row. First the effects of rules, in ascending order; then requests that were
#: refused for another reason (`refused`) or by a rule (`denied`).
VERDICTS = ("allowed", "flagged", "redacted", "would_block", "blocked", "refused", "denied")
FLAGGED, REDACTED, WOULD_BLOCK, BLOCKED, REFUSED, DENIED = range(1, len(VERDICTS))

CATALOGUE_TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE log(id INTEGER PRIMARY KEY, origin TEXT NOT NULL UNIQUE, size INTEGER NOT NULL DEFAULT 0,
  place TEXT, note TEXT, final INTEGER, configuration BLOB, configured INTEGER);
CREATE TABLE day(day INTEGER PRIMARY KEY);
-- Admissions without an end so far.
CREATE TABLE open(log INTEGER, seq INTEGER, ts INTEGER NOT NULL, PRIMARY KEY(log, seq)) WITHOUT ROWID;
-- What is known of admissions that were not read yet.
CREATE TABLE early(log INTEGER, seq INTEGER, by_log INTEGER, by_seq INTEGER, late TEXT NOT NULL,
  PRIMARY KEY(log, seq, by_log, by_seq)) WITHOUT ROWID;
-- What exchanges of a time come to: `span` is its length in five minutes, and `at` its number from 1970 on. A
-- tenant that nobody knows is 0, and so is the model, except in rows by model, whose `span` is
-- negative. Rows of the tenant -1 are over all tenants and shards: a page of all reads these.
CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE used(span INTEGER, at INTEGER, tenant INTEGER, model INTEGER, shard INTEGER,
  exchanges INTEGER NOT NULL, refused INTEGER NOT NULL, denied INTEGER NOT NULL, blocked INTEGER NOT NULL,
  would_block INTEGER NOT NULL, redacted INTEGER NOT NULL, flagged INTEGER NOT NULL, open INTEGER NOT NULL,
  prompt_tokens REAL NOT NULL, completion_tokens REAL NOT NULL, cost REAL NOT NULL,
  unpriced INTEGER NOT NULL, newest INTEGER, PRIMARY KEY(span, at, tenant, model, shard)) WITHOUT ROWID;
-- The same of the exchanges in which a rule matched: how many, and in how many of them something was denied
-- or replaced, by this rule or another.
CREATE TABLE ruled(span INTEGER, at INTEGER, tenant INTEGER, rule INTEGER, exchanges INTEGER NOT NULL,
  denied INTEGER NOT NULL, redacted INTEGER NOT NULL, PRIMARY KEY(span, at, tenant, rule)) WITHOUT ROWID;
-- The first and the last number of a tenant's admitted and denied requests in a log on a day.
CREATE TABLE numbered(log INTEGER, tenant INTEGER, day INTEGER, first INTEGER NOT NULL, last INTEGER NOT NULL,
  PRIMARY KEY(log, tenant, day)) WITHOUT ROWID;
"""

#: `providers` and `rules` are lists. Texts and lists are numbered in the tables `text` and `list`. Six
#: columns are statements of the client, with `trace_id` in 16 bytes.
DAY_TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE text(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE list(id INTEGER PRIMARY KEY, texts TEXT NOT NULL UNIQUE);
CREATE TABLE member(text INTEGER, list INTEGER, PRIMARY KEY(text, list)) WITHOUT ROWID;
CREATE TABLE exchange(
  ts INTEGER NOT NULL, log INTEGER NOT NULL, seq INTEGER NOT NULL, id NOT NULL, tenant INTEGER,
  tenant_seq INTEGER, key INTEGER, model INTEGER, providers INTEGER, endpoint INTEGER,
  verdict INTEGER NOT NULL, rules INTEGER, request_bytes INTEGER NOT NULL, version INTEGER NOT NULL,
  end_log INTEGER, end_seq INTEGER, status INTEGER, outcome INTEGER, prompt_tokens INTEGER,
  completion_tokens INTEGER, cost INTEGER, response_bytes INTEGER, duration INTEGER, session INTEGER,
  end_user INTEGER, agent INTEGER, parent_agent INTEGER, trace_id BLOB, end_user_name INTEGER,
  client_address INTEGER, key_name INTEGER,
  PRIMARY KEY(ts, log, seq)) WITHOUT ROWID;
CREATE TABLE attempt(log INTEGER, seq INTEGER, by_log INTEGER, by_seq INTEGER, number INTEGER NOT NULL,
  provider INTEGER NOT NULL, PRIMARY KEY(log, seq, by_log, by_seq)) WITHOUT ROWID;
CREATE TABLE held(held INTEGER, number INTEGER, minute INTEGER, PRIMARY KEY(held, number, minute))
  WITHOUT ROWID;
CREATE TABLE costs(minute INTEGER PRIMARY KEY, most INTEGER NOT NULL);
CREATE TABLE tenant_held(tenant INTEGER, held INTEGER, number INTEGER, hour INTEGER,
  PRIMARY KEY(tenant, held, number, hour)) WITHOUT ROWID;
CREATE TABLE tenant_costs(tenant INTEGER, hour INTEGER, most INTEGER NOT NULL, PRIMARY KEY(tenant, hour))
  WITHOUT ROWID;
-- Numbers are those of the record; `number` and those behind it are a window's, as whose `tests` are JSON.
CREATE TABLE analysis(
  ts INTEGER NOT NULL, log INTEGER NOT NULL, seq INTEGER NOT NULL, id NOT NULL, tenant INTEGER NOT NULL,
  model INTEGER NOT NULL, findings INTEGER, version INTEGER NOT NULL, entropy INTEGER, repetition INTEGER,
  stretch INTEGER, number INTEGER, answers INTEGER, length INTEGER, refusal INTEGER, cut INTEGER, tests TEXT,
  PRIMARY KEY(ts, log, seq)) WITHOUT ROWID;
CREATE INDEX by_id ON exchange(id);
CREATE INDEX by_tenant ON exchange(tenant, ts);
CREATE INDEX by_rules ON exchange(ts) WHERE rules IS NOT NULL;
CREATE INDEX by_tenant_rules ON exchange(tenant, ts) WHERE rules IS NOT NULL;
CREATE INDEX by_verdict ON exchange(verdict, ts) WHERE verdict > 0;
CREATE INDEX by_session ON exchange(session, ts) WHERE session IS NOT NULL;
CREATE INDEX by_end_user ON exchange(end_user, ts) WHERE end_user IS NOT NULL;
CREATE INDEX by_end_user_name ON exchange(end_user_name, ts) WHERE end_user_name IS NOT NULL;
CREATE INDEX by_client_address ON exchange(client_address, ts) WHERE client_address IS NOT NULL;
CREATE INDEX by_trace ON exchange(trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX by_open ON exchange(ts) WHERE end_seq IS NULL;
CREATE INDEX by_pair ON analysis(tenant, model, ts);
"""

_EPOCH = date(1970, 1, 1)
_DAY_MICROSECONDS = 86_400_000_000
_MAX_TIMESTAMP = 253_402_300_799_999_999


def day_name(day: int) -> str:
    """Formats a day as in ISO 8601."""
    return (_EPOCH + timedelta(days=day)).isoformat()


def day_of(ts: int) -> int:
    """Returns the day of a time in Unix microseconds."""
    return ts // _DAY_MICROSECONDS


def day_bounds(day: int) -> tuple[int, int]:
    """Returns the start of a day and of the next day, in Unix microseconds."""
    return day * _DAY_MICROSECONDS, (day + 1) * _DAY_MICROSECONDS


def format_time(ts: int) -> str:
    """Formats a time in Unix microseconds as in RFC 3339. A time after the year 9999 becomes the end of that
    year."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=min(ts, _MAX_TIMESTAMP))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment.year > 999 else moment.isoformat()


def day_path(directory: Path, day: int) -> Path:
    """Returns the path of a day's file."""
    return directory / f"{day_name(day)}.sqlite"


def connect(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """Opens an existing file. Raises IndexUnusableError."""
    uri = f"file:{urllib.parse.quote(str(path))}?mode={'rw' if write else 'ro'}"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA cache_size = -16384")
        if write:
            connection.execute(f"PRAGMA synchronous = {SQLITE_SYNCHRONOUS}")
        # Only a read shows whether the file is a database.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        raise IndexUnusableError(f"{path} cannot be opened: {error}", "index_io") from None
    return connection


def create(path: Path, tables: str, meta: dict[str, str | int]) -> sqlite3.Connection:
    """Creates a file with its tables atomically, and replaces any existing file. Raises sqlite3.Error,
    OSError."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA synchronous = {SQLITE_SYNCHRONOUS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA cache_size = -16384")
        connection.executescript(f"BEGIN;\n{tables}")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.close()
        raise
    return connection


def read_meta(connection: sqlite3.Connection) -> dict[str, str | int]:
    """Reads the metadata of a file; empty if it has none."""
    try:
        return dict(connection.execute("SELECT name, value FROM meta"))
    except sqlite3.Error:
        return {}


def open_catalogue(directory: Path, *, write: bool = False) -> sqlite3.Connection:
    """Opens the catalogue of an index. Raises IndexUnusableError."""
    path = directory / CATALOGUE
    if not path.is_file():
        raise IndexUnusableError(
            f"{directory} has no index: `proofgate audit index` creates one", "index_missing"
        )
    connection = connect(path, write=write)
    found = read_meta(connection).get("schema")
    if found != SCHEMA:
        connection.close()
        raise IndexUnusableError(
            f"the index in {directory} has schema {found}, but this version needs {SCHEMA}: "
            "`proofgate audit index --rebuild` rebuilds the index",
            "index_schema",
        )
    return connection


def open_day(directory: Path, day: int, generation: str, *, write: bool = False) -> sqlite3.Connection:
    """Opens the file of a day that the catalogue names. Raises IndexUnusableError."""
    path = day_path(directory, day)
    if not path.is_file():
        raise IndexUnusableError(
            f"{path} is missing, but the catalogue names it: `proofgate audit index --rebuild` "
            "rebuilds the index",
            "index_damaged",
        )
    connection = connect(path, write=write)
    meta = read_meta(connection)
    if (meta.get("schema"), meta.get("generation")) != (SCHEMA, generation):
        connection.close()
        raise IndexUnusableError(
            f"{path} belongs to another index: `proofgate audit index --rebuild` rebuilds the index",
            "index_damaged",
        )
    return connection
