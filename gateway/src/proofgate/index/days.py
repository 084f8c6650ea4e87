"""Writing of one day's file: numbers of texts and lists, rows, and later additions to rows."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proofgate.index import minutes
from proofgate.index.denials import effective_verdict
from proofgate.index.schema import REFUSED

if TYPE_CHECKING:
    from proofgate import _core

#: Maximum number of cached numbers; a day may have more.
_MAX_CACHED_NUMBERS = 100_000
_GATEWAY_ID_PREFIX = "req_"
_GATEWAY_ID_DIGITS = 32

_INSERT = f"INSERT OR REPLACE INTO exchange VALUES ({', '.join('?' * 31)})"  # noqa: S608 - nothing of others
_INSERT_ANALYSIS = f"INSERT OR REPLACE INTO analysis VALUES ({', '.join('?' * 17)})"  # noqa: S608 - as above
_UPDATE_END = """
UPDATE exchange SET end_log = ?, end_seq = ?, status = ?, outcome = ?, prompt_tokens = ?,
  completion_tokens = ?, cost = ?, response_bytes = ?, duration = ?, verdict = max(verdict, ?), rules = ?
WHERE ts = ? AND log = ? AND seq = ?"""


@dataclass(frozen=True)
class LateRecordUpdate:
    """A record that adds to an existing row, and the exchange of this row."""

    ts: int
    log: int
    seq: int
    source_log: int
    late_record: dict[str, Any]


@dataclass(frozen=True)
class VerdictChange:
    """An exchange that matched rules or was refused, or a change of an exchange by its end."""

    ts: int
    tenant: str | None
    model: str | None
    verdict: int
    rules: tuple[str, ...]
    #: Previous verdict and rules of an exchange that already has a row.
    previous_verdict: int = 0
    previous_rules: tuple[str, ...] = ()


#: Positions in a row of the values for `VerdictChange`: time, tenant, model, verdict, rules and outcome.
_TS, _TENANT, _MODEL, _VERDICT, _RULES, _OUTCOME = 0, 4, 7, 10, 11, 17


@dataclass
class DayWriter:
    """One day's file, open for writing."""

    connection: sqlite3.Connection
    _texts: dict[str, int] = field(default_factory=dict)
    _lists: dict[str, int] = field(default_factory=dict)

    def add(self, batch: _core.ExchangeBatch, day: int, log: int, version: int) -> list[VerdictChange]:
        """Writes the rows of a batch and overwrites existing ones. Returns the exchanges that matched rules
        or were refused."""
        names = batch.texts(day)
        texts = [self._text(name) for name in names]
        named = [[names[text] for text in texts_of] for texts_of in batch.lists(day)]
        lists = [self._list(of) for of in named]
        rows = batch.rows(day, texts, lists, log, version)
        judged = _collect_verdicts(
            rows, dict(zip(texts, names, strict=True)), dict(zip(lists, named, strict=True))
        )
        self.connection.executemany(_INSERT, rows)
        self.connection.executemany(_INSERT_ANALYSIS, batch.analysed(day, texts, lists, log, version))
        minutes.record_minutes(self.connection, *batch.minutes(day, texts, lists))
        attempts = batch.attempts(day, texts)
        if attempts:
            self.connection.executemany(
                "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?, ?, ?)",
                [(log, seq, log, at, number, provider) for seq, at, number, provider in attempts],
            )
        return judged

    def apply_late_record(self, effect: LateRecordUpdate) -> VerdictChange | None:
        """Adds the data of a record to a row. Returns the new state of the exchange, or None if there is no
        row."""
        late, place = effect.late_record, (effect.ts, effect.log, effect.seq)
        row = self.connection.execute(
            "SELECT providers, rules, tenant, (SELECT text FROM text WHERE id = tenant),"
            " (SELECT text FROM text WHERE id = model), verdict"
            " FROM exchange WHERE ts = ? AND log = ? AND seq = ? AND id = ?",
            (*place, encode_request_id(late["id"])),
        ).fetchone()
        if row is None:
            return None
        if late["kind"] == "attempt":
            provider = self._text(late["provider"])
            self.connection.execute(
                "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?, ?, ?)",
                (effect.log, effect.seq, effect.source_log, late["seq"], late["number"], provider),
            )
            names = [*self._list_members(row[0]), late["provider"]]
            providers = self._list(list(dict.fromkeys(names)))
            self._record_minute(effect.ts, row[2], minutes.PROVIDERS, providers)
            self.connection.execute(
                "UPDATE exchange SET providers = ? WHERE ts = ? AND log = ? AND seq = ?", (providers, *place)
            )
            return VerdictChange(effect.ts, row[3], row[4], row[5], ())
        rules, matched = row[1], self._list_members(row[1])
        named = sorted({*matched, *late["rules"]})
        if late["rules"]:
            rules = self._list(named)
        outcome = self._text(late["outcome"])
        self._record_minute(effect.ts, row[2], minutes.OUTCOME, outcome, late["cost"])
        if rules is not None:
            self._record_minute(effect.ts, row[2], minutes.RULES, rules)
        told = ("prompt_tokens", "completion_tokens", "cost", "bytes", "duration")
        self.connection.execute(
            _UPDATE_END,
            (
                *(effect.source_log, late["seq"], late["status"], outcome),
                *(late[name] for name in told),
                *(late["verdict"], rules, *place),
            ),
        )
        verdict = max(row[5], late["verdict"])
        return VerdictChange(effect.ts, row[3], row[4], verdict, tuple(named), row[5], tuple(matched))

    def _record_minute(
        self, ts: int, tenant: int | None, column: int, number: int, cost: int | None = None
    ) -> None:
        minute, hour = minutes.minute_of(ts), minutes.hour_of(ts)
        costs = [] if cost is None else [(minute, cost)]
        of_tenants = [] if tenant is None else [(tenant, column, number, hour)]
        of_tenants_costs = [] if tenant is None or cost is None else [(tenant, hour, cost)]
        minutes.record_minutes(
            self.connection, [(column, number, minute)], costs, of_tenants, of_tenants_costs
        )

    def _text(self, text: str) -> int:
        return self._find_or_add_number("text", "text", text, self._texts)[0]

    def _list(self, names: list[str]) -> int:
        texts = json.dumps(names, ensure_ascii=False, separators=(",", ":"))
        number, is_new = self._find_or_add_number("list", "texts", texts, self._lists)
        if is_new:
            members = [(self._text(name), number) for name in names]
            self.connection.executemany("INSERT OR IGNORE INTO member VALUES (?, ?)", members)
        return number

    def _find_or_add_number(
        self, table: str, column: str, value: str, known: dict[str, int]
    ) -> tuple[int, bool]:
        number = known.get(value)
        if number is not None:
            return number, False
        # Both names are constants of this package.
        found = self.connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()  # noqa: S608
        if found is None:
            made = self.connection.execute(f"INSERT INTO {table}({column}) VALUES (?)", (value,))  # noqa: S608
            number = int(made.lastrowid or 0)
        else:
            number = int(found[0])
        if len(known) >= _MAX_CACHED_NUMBERS:
            known.clear()
        known[value] = number
        return number, found is None

    def _list_members(self, number: int | None) -> list[str]:
        if number is None:
            return []
        texts = self.connection.execute("SELECT texts FROM list WHERE id = ?", (number,)).fetchone()
        names: list[str] = json.loads(texts[0])
        return names


def _collect_verdicts(
    rows: list[tuple[Any, ...]], texts: dict[int, str], lists: dict[int, list[str]]
) -> list[VerdictChange]:
    """Sets the verdict in the rows of refusals by rules. Returns all exchanges that are not simply
    allowed."""
    judged = []
    for at, row in enumerate(rows):
        if row[_VERDICT] == 0:
            continue
        verdict = row[_VERDICT]
        if verdict == REFUSED:
            verdict = effective_verdict(verdict, texts[row[_OUTCOME]])
            rows[at] = (*row[:_VERDICT], verdict, *row[_VERDICT + 1 :])
        tenant, model, rules = row[_TENANT], row[_MODEL], row[_RULES]
        judged.append(
            VerdictChange(
                row[_TS],
                None if tenant is None else texts[tenant],
                None if model is None else texts[model],
                verdict,
                () if rules is None else tuple(lists[rules]),
            )
        )
    return judged


def encode_request_id(text: str) -> bytes | str:
    """Encodes a request id for a row: the gateway's own ids in 16 bytes, any other id as text."""
    digits = text.removeprefix(_GATEWAY_ID_PREFIX)
    if len(digits) == _GATEWAY_ID_DIGITS and text.startswith(_GATEWAY_ID_PREFIX) and digits == digits.lower():
        try:
            return bytes.fromhex(digits) if digits.isalnum() else text
        except ValueError:
            pass
    return text


def decode_request_id(stored: bytes | str) -> str:
    """Decodes a request id to the text that its client got."""
    return _GATEWAY_ID_PREFIX + stored.hex() if isinstance(stored, bytes) else stored
