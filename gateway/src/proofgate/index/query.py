"""Pages of exchanges. A page continues after the last row of the previous one, by time and position, in the
same version of the index. Rows that are added later are in none of these pages."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from proofgate.index import minutes, schema, sums
from proofgate.index.conditions import conditions_of
from proofgate.index.days import decode_request_id, encode_request_id
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import OPEN, Cursor, Filter

MAX_ROWS = 1000
_MICROSECONDS_IN_MILLISECOND = 1000
#: Instructions of SQLite's virtual machine between two checks of the time limit.
_PROGRESS_STEPS = 100_000

_COLUMNS = """
SELECT ts, log, seq, id, (SELECT text FROM text WHERE id = tenant) AS tenant, tenant_seq,
  (SELECT text FROM text WHERE id = key) AS key, (SELECT text FROM text WHERE id = model) AS model,
  (SELECT texts FROM list WHERE id = providers) AS providers,
  (SELECT text FROM text WHERE id = endpoint) AS endpoint, verdict,
  (SELECT texts FROM list WHERE id = rules) AS rules, request_bytes, end_log, end_seq, status,
  (SELECT text FROM text WHERE id = outcome) AS outcome, prompt_tokens, completion_tokens, cost,
  response_bytes, duration, (SELECT text FROM text WHERE id = session) AS session,
  (SELECT text FROM text WHERE id = end_user) AS end_user, (SELECT text FROM text WHERE id = agent) AS agent,
  (SELECT text FROM text WHERE id = parent_agent) AS parent_agent, trace_id,
  (SELECT text FROM text WHERE id = end_user_name) AS end_user_name,
  (SELECT text FROM text WHERE id = client_address) AS client_address,
  (SELECT text FROM text WHERE id = key_name) AS key_name
FROM exchange"""

_SELECT_BY_NUMBER = """
WHERE tenant = (SELECT id FROM text WHERE text = ?) AND log = ? AND tenant_seq = ? AND version <= ?"""


@dataclass(frozen=True)
class ExchangeRow:
    """One exchange, and the positions of its records."""

    facts: dict[str, Any]
    position: tuple[int, int, int]
    """Time, log and number of the first record of the exchange."""
    records: tuple[tuple[str, int], ...]
    """Origin and number of each known record of the exchange, in order."""


@dataclass(frozen=True)
class Page:
    """The rows of a page, and the cursor of the next page; None if there is none."""

    rows: list[ExchangeRow]
    next_cursor: str | None


class IndexSnapshot:
    """A snapshot of the current index, for queries during a limited number of seconds. For use by one thread
    at a time."""

    def __init__(self, directory: Path, seconds: float | None = None) -> None:
        self.directory = directory
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._catalogue = catalogue = schema.open_catalogue(directory)
        if self._deadline is not None:
            catalogue.set_progress_handler(self._is_past_deadline, _PROGRESS_STEPS)
        try:
            # One transaction, so that version, days and logs are consistent.
            catalogue.execute("BEGIN")
            meta = schema.read_meta(catalogue)
            self.ledger_key = str(meta["ledger"])
            self.generation = str(meta["generation"])
            self.version = int(meta["version"])
            self.pruned_before = int(meta["pruned_before"]) if "pruned_before" in meta else None
            self.days = [day for (day,) in catalogue.execute("SELECT day FROM day ORDER BY day")]
        except (sqlite3.Error, KeyError, ValueError) as error:
            catalogue.close()
            raise _damaged(directory, error) from None
        self._open: dict[int, sqlite3.Connection] = {}
        self._origins: dict[int, str | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._open.values():
            connection.close()
        self._catalogue.close()

    def note(self, origin: str) -> str | None:
        """Returns the checkpoint up to which a log is in the index; None for an unknown log."""
        row = self._catalogue.execute("SELECT note FROM log WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else row[0]

    def page(self, asked: Filter, limit: int, after: str | None = None) -> Page:
        """Returns at most `limit` rows after a cursor. Raises IndexUnusableError."""
        cursor = Cursor.decode(after, asked) if after else None
        if cursor is not None and cursor.generation != self.generation:
            raise IndexUnusableError(
                "the index was rebuilt after the first page: start again from the first page",
                "cursor_expired",
            )
        version = self.version if cursor is None else min(cursor.version, self.version)
        place = None if cursor is None else cursor.after
        rows: list[ExchangeRow] = []
        for day in self._matching_days(asked, place):
            rows += self._rows(day, asked, version, place, limit + 1 - len(rows))
            if len(rows) > limit:
                next_page = Cursor(asked, self.generation, version, rows[limit - 1].position)
                return Page(rows[:limit], next_page.encode())
        return Page(rows, None)

    def all_rows(self, asked: Filter) -> Iterator[ExchangeRow]:
        """Yields all rows, page by page. Raises IndexUnusableError."""
        after: str | None = None
        while True:
            page = self.page(asked, MAX_ROWS, after)
            yield from page.rows
            after = page.next_cursor
            if after is None:
                return

    def find(self, request_id: str, tenant: str | None = None) -> ExchangeRow | None:
        """Returns the exchange with an id, of one tenant or of any; None without one. Raises
        IndexUnusableError."""
        page = self.page(Filter(id=request_id, tenant=tenant), 1)
        return page.rows[0] if page.rows else None

    def find_admission(self, tenant: str, origin: str, number: int, near: int) -> ExchangeRow | None:
        """Finds a tenant's admitted or denied request by its number in a log. The search starts near a time,
        and covers only days that may contain the number. None if there is none."""
        try:
            logs = self._catalogue.execute("SELECT id FROM log WHERE origin = ?", (origin,)).fetchone()
            days = sums.days_of_admission(self._catalogue, tenant, origin, number)
        except sqlite3.Error as error:
            raise _damaged(self.directory, error) from None
        for day in sorted(days, key=lambda day: abs(day - schema.day_of(near))):
            for beside in (" AND ts >= ? ORDER BY ts LIMIT 1", " AND ts < ? ORDER BY ts DESC LIMIT 1"):
                values = [tenant, logs[0], number, self.version, near]
                found = self._select(self._day(day), _SELECT_BY_NUMBER + beside, values)
                if found:
                    return found[0]
        return None

    def read_sums(
        self, span: int, first: int, behind: int, tenant: str | None
    ) -> Iterator[tuple[int | None, str | None, str | None, str, sums.UsageSums]]:
        """Reads the same as `sums.read_sums`, in this version. Raises IndexUnusableError."""
        try:
            yield from sums.read_sums(self._catalogue, span, first, behind, tenant)
        except sqlite3.Error as error:
            raise self._query_error(error) from None

    def query_catalogue(self, select: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """Returns the rows of a SELECT from the catalogue, in this version. Raises IndexUnusableError."""
        try:
            return self._catalogue.execute(select, values).fetchall()
        except sqlite3.Error as error:
            raise self._query_error(error) from None

    def query_day(self, day: int, select: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """Returns the rows of a SELECT from the file of a day, which may include newer rows. Raises
        IndexUnusableError."""
        connection = self._day(day)
        try:
            return connection.execute(select, values).fetchall()
        except sqlite3.Error as error:
            raise self._query_error(error) from None

    def require_retained(self, asked: Filter) -> None:
        """Raises IndexUnusableError (`day_pruned`) if requested days were removed."""
        list(self._matching_days(asked, None))

    def query_days(
        self,
        asked: Filter,
        select: str,
        values: list[Any],
        rest: str = "GROUP BY tenant, log",
        more: Sequence[Any] = (),
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Runs a query on each matching day, and yields the day with each row. The query is `select`, which
        ends with WHERE, then the conditions of the filter, then `rest`. `values` and `more` are the
        parameters of `select` and `rest`. Raises IndexUnusableError.
        """
        for day in self._matching_days(asked, None):
            connection = self._day(day)
            try:
                found = conditions_of(connection, asked)
                if found is None:
                    continue
                times = [("ts >= ?", asked.since), ("ts < ?", asked.until)]
                found += [(condition, ts) for condition, ts in times if ts is not None]
                conditions = " AND ".join(["version <= ?", *(condition for condition, _ in found)])
                given = [*values, self.version, *(value for _, value in found if value is not None), *more]
                for row in connection.execute(f"{select} {conditions} {rest}", given):
                    yield day, row
            except sqlite3.Error as error:
                raise self._query_error(error) from None

    def origin(self, log: int) -> str | None:
        """Returns the origin of a log by its number; None for a log that was added later."""
        if log not in self._origins:
            row = self._catalogue.execute("SELECT origin FROM log WHERE id = ?", (log,)).fetchone()
            self._origins[log] = None if row is None else row[0]
        return self._origins[log]

    def logs(self) -> list[tuple[str, bool, bytes | None, int]]:
        """Returns each log that was read: origin, whether it has ended, the digest of its current
        configuration, and the time in Unix microseconds since which that applies. Raises
        IndexUnusableError."""
        try:
            found = self._catalogue.execute(
                "SELECT origin, final IS NOT NULL AND size >= final, configuration, coalesce(configured, 0)"
                " FROM log WHERE size > 0 ORDER BY origin"
            )
            return [(origin, bool(ended), digest, since) for origin, ended, digest, since in found]
        except sqlite3.Error as error:
            raise _damaged(self.directory, error) from None

    def _matching_days(self, asked: Filter, place: tuple[int, int, int] | None) -> Iterator[int]:
        first = None if asked.since is None else schema.day_of(asked.since)
        last = None if asked.until is None else schema.day_of(asked.until - 1)
        if place is not None:
            at = schema.day_of(place[0])
            first, last = (first, at) if asked.newest else (at, last)
        if self.pruned_before is not None and any(
            day is not None and day < self.pruned_before for day in (first, last)
        ):
            raise IndexUnusableError(
                f"the days before {schema.day_name(self.pruned_before)} were removed from the index",
                "day_pruned",
            )
        # An id from the gateway contains its time. The exchange started on that day, or, if the clock was
        # changed, on an adjacent day.
        own = encode_request_id(asked.id) if asked.id is not None else None
        near = (
            schema.day_of(int.from_bytes(own[:6]) * _MICROSECONDS_IN_MILLISECOND)
            if isinstance(own, bytes)
            else None
        )
        for day in reversed(self.days) if asked.newest else self.days:
            if (
                (first is None or day >= first)
                and (last is None or day <= last)
                and (near is None or abs(day - near) <= 1)
            ):
                yield day

    def _rows(
        self, day: int, asked: Filter, version: int, place: tuple[int, int, int] | None, limit: int
    ) -> list[ExchangeRow]:
        connection = self._day(day)
        try:
            found = conditions_of(connection, asked)
            spans = [] if found is None else self._spans(connection, day, asked, place)
        except sqlite3.Error as error:
            raise _damaged(self.directory, error) from None
        if found is None:
            return []
        conditions = ["version <= ?", *(condition for condition, _ in found)]
        values = [version, *(value for _, value in found if value is not None)]
        direction = "DESC" if asked.newest else "ASC"
        if place is not None:
            side = "<" if asked.newest else ">"
            conditions.append(f"(ts, log, seq) {side} (?, ?, ?)")
            values += place
        rest = " AND ".join([*conditions, "ts >= ?", "ts < ?"])
        order = f"ORDER BY ts {direction}, log {direction}, seq {direction} LIMIT ?"
        rows: list[ExchangeRow] = []
        for span in spans:
            left = limit - len(rows)
            if not left:
                break
            rows += self._select(connection, f" WHERE {rest} {order}", [*values, *span, left])
        return rows

    @staticmethod
    def _spans(
        connection: sqlite3.Connection, day: int, asked: Filter, place: tuple[int, int, int] | None
    ) -> list[tuple[int, int]]:
        """The time spans in a day that may have matches, in the requested order."""
        begin, end = schema.day_bounds(day)
        if asked.since is not None:
            begin = max(begin, asked.since)
        if asked.until is not None:
            end = min(end, asked.until)
        if place is not None:
            begin, end = (begin, min(end, place[0] + 1)) if asked.newest else (max(begin, place[0]), end)
        spans = minutes.spans(connection, asked, begin, end)
        return spans[::-1] if asked.newest else spans

    def _select(self, connection: sqlite3.Connection, rest: str, values: list[Any]) -> list[ExchangeRow]:
        try:
            rows = connection.execute(_COLUMNS + rest, values).fetchall()
            return [self._row(connection, row) for row in rows]
        except sqlite3.Error as error:
            raise self._query_error(error) from None

    def _query_error(self, error: sqlite3.Error) -> IndexUnusableError:
        if self._is_past_deadline():
            return IndexUnusableError(
                "the query takes too long: choose a tenant or a shorter time", "question_too_long"
            )
        return _damaged(self.directory, error)

    def _is_past_deadline(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def _row(self, connection: sqlite3.Connection, row: tuple[Any, ...]) -> ExchangeRow:
        ts, log, seq, own_id, tenant, tenant_seq, key, model, providers, endpoint, verdict, rules = row[:12]
        size, end_log, end_seq, status, outcome, prompt, completion, cost, answer, duration = row[12:22]
        session, end_user, agent, parent_agent, trace_id, end_user_name, client_address, key_name = row[22:]
        places = [(log, seq)]
        providers = json.loads(providers) if providers else []
        if tenant_seq is not None:
            attempts = connection.execute(
                "SELECT by_log, by_seq FROM attempt WHERE log = ? AND seq = ? ORDER BY number", (log, seq)
            )
            places += attempts
        if end_seq is not None and (end_log, end_seq) != (log, seq):
            places.append((end_log, end_seq))
        named = [(self.origin(log), number) for log, number in places]
        records = [(origin, number) for origin, number in named if origin is not None]
        facts = {
            "id": decode_request_id(own_id),
            "time": schema.format_time(ts),
            "tenant": tenant,
            "tenant_seq": tenant_seq,
            "key": key,
            "key_name": key_name,
            "model": model,
            "providers": providers,
            "endpoint": endpoint,
            "verdict": schema.VERDICTS[verdict],
            "rules": json.loads(rules) if rules else [],
            "outcome": outcome or OPEN,
            "status": status,
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "cost_nanodollars": cost,
            "request_bytes": size,
            "response_bytes": answer,
            "duration_us": duration,
            "session": session,
            "end_user": end_user,
            "end_user_name": end_user_name,
            "agent": agent,
            "parent_agent": parent_agent,
            "trace_id": None if trace_id is None else trace_id.hex(),
            "client_address": client_address,
            "records": [{"origin": origin, "index": index} for origin, index in records],
        }
        return ExchangeRow(facts, (ts, log, seq), tuple(records))

    def _day(self, day: int) -> sqlite3.Connection:
        if day not in self._open:
            # A query over years does not keep all files open.
            for other in list(self._open)[:-1]:
                self._open.pop(other).close()
            self._open[day] = self._open_day(day)
            if self._deadline is not None:
                self._open[day].set_progress_handler(self._is_past_deadline, _PROGRESS_STEPS)
        return self._open[day]

    def _open_day(self, day: int) -> sqlite3.Connection:
        try:
            return schema.open_day(self.directory, day, self.generation)
        except IndexUnusableError:
            # The day may have been removed since the query started.
            with contextlib.closing(schema.open_catalogue(self.directory)) as newer:
                pruned_before = schema.read_meta(newer).get("pruned_before")
            if not isinstance(pruned_before, int) or day >= pruned_before:
                raise
            raise IndexUnusableError(
                "a day of the result was just removed: try again", "day_pruned"
            ) from None


def _damaged(directory: Path, error: Exception) -> IndexUnusableError:
    return IndexUnusableError(
        f"the index in {directory} cannot be read: {error}. `proofgate audit index --rebuild` "
        "rebuilds the index",
        "index_damaged",
    )
