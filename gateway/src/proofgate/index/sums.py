"""Sums over the exchanges of an index, updated with each batch of records. A query over a month reads stored
sums of days, and rows only for the minutes at its edges.

The sums are in the catalogue. If the process was killed between the writes of a day's file and of the
catalogue, the new rows are in no sum. They are added when their records are read again.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from proofgate.index.schema import BLOCKED, DENIED, REDACTED, VERDICTS

if TYPE_CHECKING:
    from proofgate import _core
    from proofgate.index.days import VerdictChange

#: The shortest period with sums, in microseconds.
FIVE_MINUTES_MICROSECONDS = 300_000_000
HOUR, DAY = 12, 288
#: Lengths of the periods with sums, longest first, in units of five minutes.
SPANS = (DAY, HOUR, 1)
#: Lengths of the periods with sums for each model. The table stores them as negative numbers.
SPANS_BY_MODEL = tuple(-span for span in SPANS)
#: Number of the tenant in rows for all tenants together; the shard is 0.
ALL_TENANTS = -1

_ADD = """
INSERT INTO used VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(span, at, tenant, model, shard) DO UPDATE SET exchanges = exchanges + excluded.exchanges,
  refused = refused + excluded.refused, denied = denied + excluded.denied,
  blocked = blocked + excluded.blocked, would_block = would_block + excluded.would_block,
  redacted = redacted + excluded.redacted, flagged = flagged + excluded.flagged, open = open + excluded.open,
  prompt_tokens = prompt_tokens + excluded.prompt_tokens,
  completion_tokens = completion_tokens + excluded.completion_tokens, cost = cost + excluded.cost,
  unpriced = unpriced + excluded.unpriced,
  newest = max(coalesce(newest, excluded.newest), coalesce(excluded.newest, newest))"""
_ADD_RULE = """
INSERT INTO ruled VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(span, at, tenant, rule) DO UPDATE SET exchanges = exchanges + excluded.exchanges,
  denied = denied + excluded.denied, redacted = redacted + excluded.redacted"""
_NUMBER = """
INSERT INTO numbered VALUES (?, ?, ?, ?, ?)
ON CONFLICT(log, tenant, day)
  DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)"""


@dataclass
class UsageSums:
    """Sums over exchanges: counts, tokens, nanodollars, and the admission time of the newest in Unix
    microseconds; None without one. Tokens and costs are floating-point, because providers can report any
    number of tokens, and integers would overflow."""

    exchanges: int = 0
    #: Number of requests that were refused for another reason than a rule.
    refused: int = 0
    denied: int = 0
    blocked: int = 0
    would_block: int = 0
    redacted: int = 0
    flagged: int = 0
    open: int = 0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    cost: float = 0.0
    unpriced: int = 0
    newest: int | None = None

    def add(self, other: UsageSums) -> None:
        """Adds the sums of other exchanges."""
        mine = self.__dict__
        newest = mine["newest"]
        for name, figure in other.__dict__.items():
            if name != "newest":
                mine[name] += figure
            elif figure is not None and (newest is None or figure > newest):
                mine[name] = figure


#: Number of the five-minute period, tenant, model and shard.
_Key = tuple[int, str | None, str | None, str]
#: Number of the five-minute period, tenant and rule.
_RuleKey = tuple[int, str | None, str]


class SumsBatch:
    """The additions of a batch to the sums in a catalogue."""

    def __init__(self, number_of: Callable[[str], int]) -> None:
        self._number_of = number_of
        self._used: dict[_Key, UsageSums] = defaultdict(UsageSums)
        self._ruled: dict[_RuleKey, list[int]] = defaultdict(lambda: [0, 0, 0])
        self._numbered: list[tuple[int, int, int, int, int]] = []

    def add_batch(
        self, batch: _core.ExchangeBatch, day: int, log: int, shard: str, judged: Iterable[VerdictChange]
    ) -> None:
        """Adds the exchanges of a batch that started on a day, and their verdicts."""
        for (at, tenant, model), counts, amounts, (unpriced, newest) in batch.sums(day):
            exchanges, _, _, is_open = counts
            prompt, completion, cost = amounts
            self._used[at, tenant, model, shard].add(
                UsageSums(
                    exchanges=exchanges,
                    open=is_open,
                    prompt_tokens=prompt,
                    completion_tokens=completion,
                    cost=cost,
                    unpriced=unpriced,
                    newest=newest,
                )
            )
        for of in judged:
            self._apply_verdict(of, shard)
        self._numbered += [
            (log, self._number_of(tenant), day, first, last)
            for tenant, first, last in batch.request_number_ranges(day)
        ]

    def add_end(self, of: VerdictChange, shard: str, told: dict[str, Any]) -> None:
        """Adds the end of an exchange that was open before, from a late record."""
        self._apply_verdict(of, shard)
        self._used[of.ts // FIVE_MINUTES_MICROSECONDS, of.tenant, of.model, shard].add(
            UsageSums(
                open=-1,
                prompt_tokens=float(told["prompt_tokens"] or 0),
                completion_tokens=float(told["completion_tokens"] or 0),
                cost=float(told["cost"] or 0),
                unpriced=int(told["cost"] is None),
            )
        )

    def _apply_verdict(self, of: VerdictChange, shard: str) -> None:
        at = of.ts // FIVE_MINUTES_MICROSECONDS
        used = self._used[at, of.tenant, of.model, shard]
        for verdict, change in ((of.previous_verdict, -1), (of.verdict, 1)):
            if verdict:
                name = VERDICTS[verdict]
                setattr(used, name, getattr(used, name) + change)
        for rules, verdict, change in (
            (of.previous_rules, of.previous_verdict, -1),
            (of.rules, of.verdict, 1),
        ):
            for rule in rules:
                sums = self._ruled[at, of.tenant, rule]
                sums[0] += change
                sums[1] += change * (verdict in (BLOCKED, DENIED))
                sums[2] += change * (verdict == REDACTED)

    def write(self, catalogue: sqlite3.Connection) -> None:
        """Writes the additions. Raises sqlite3.Error."""
        summed: dict[tuple[int, ...], UsageSums] = defaultdict(UsageSums)
        for (at, *names), used in self._used.items():
            tenant, model, shard = (0 if name is None else self._number_of(name) for name in names)
            for span in SPANS:
                summed[span, at // span, tenant, 0, shard].add(used)
                summed[-span, at // span, tenant, model, shard].add(used)
                summed[span, at // span, ALL_TENANTS, 0, 0].add(used)
                summed[-span, at // span, ALL_TENANTS, model, 0].add(used)
        catalogue.executemany(_ADD, [(*key, *astuple(used)) for key, used in sorted(summed.items())])
        catalogue.executemany(_ADD_RULE, self._rule_rows())
        catalogue.executemany(_NUMBER, self._numbered)

    def _rule_rows(self) -> list[tuple[int, ...]]:
        summed: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        for (at, tenant, rule), figures in self._ruled.items():
            number, named = 0 if tenant is None else self._number_of(tenant), self._number_of(rule)
            for span in SPANS:
                for whose in (number, ALL_TENANTS):
                    of = summed[span, at // span, whose, named]
                    of[:] = map(sum, zip(of, figures, strict=True))
        return [(*key, *figures) for key, figures in sorted(summed.items())]


def prune(catalogue: sqlite3.Connection, before: int) -> None:
    """Removes the sums of the days before a day. Raises sqlite3.Error."""
    gone = [(span, before * DAY // abs(span)) for span in (*SPANS, *SPANS_BY_MODEL)]
    catalogue.executemany("DELETE FROM used WHERE span = ? AND at < ?", gone)
    catalogue.executemany("DELETE FROM ruled WHERE span = ? AND at < ?", gone)
    catalogue.execute("DELETE FROM numbered WHERE day < ?", (before,))


def split_spans(begin: int, end: int, spans: Iterable[int] = SPANS) -> Iterator[tuple[int, int, int]]:
    """Divides a period (start, and end exclusive, in Unix microseconds) into the longest spans with stored
    sums, in order. Yields the length of the span in units of five minutes, the number of the first span, and
    of the last plus one. For a rest without stored sums, yields 0 and its bounds in microseconds."""
    rest = list(spans)
    if begin >= end:
        return
    if not rest:
        yield 0, begin, end
        return
    span = rest.pop(0)
    length = abs(span) * FIVE_MINUTES_MICROSECONDS
    first, behind = -(-begin // length), end // length
    if first >= behind:
        yield from split_spans(begin, end, rest)
        return
    yield from split_spans(begin, first * length, rest)
    yield span, first, behind
    yield from split_spans(behind * length, end, rest)


#: SQL condition for the rows of all tenants. Its parameters are the length of the span, the first time and
#: the end (exclusive).
EACH_TENANT_CONDITION = f"span = ? AND at >= ? AND at < ? AND tenant > {ALL_TENANTS}"
#: SQL condition for the rows in `used` and `ruled` of one tenant, or of the sums over all. The times are
#: enumerated, so that each is one index search, regardless of the number of tenants. `one_tenant_values`
#: returns its parameters.
ONE_TENANT_CONDITION = f"""span = ? AND at IN (
  WITH RECURSIVE step(at, behind) AS (
    SELECT ?, ? UNION ALL SELECT at + 1, behind FROM step WHERE at + 1 < behind)
  SELECT at FROM step WHERE at < behind)
  AND tenant = CASE WHEN ? THEN {ALL_TENANTS} ELSE (SELECT id FROM name WHERE text = ?) END"""  # noqa: S608 - ours


def one_tenant_values(span: int, first: int, behind: int, tenant: str | None) -> list[Any]:
    """Returns the parameters of `ONE_TENANT_CONDITION` for spans of one length, as from `split_spans`, of one
    tenant or of all."""
    return [span, first, behind, tenant is None, tenant]


SUM_COLUMNS = """sum(exchanges), sum(refused), sum(denied), sum(blocked), sum(would_block), sum(redacted),
  sum(flagged), sum(open), sum(prompt_tokens), sum(completion_tokens), sum(cost), sum(unpriced),
  max(newest)"""
_SELECT_SUMS = f"""{SUM_COLUMNS}
FROM used WHERE {EACH_TENANT_CONDITION}"""


def read_sums(
    catalogue: sqlite3.Connection, span: int, first: int, behind: int, tenant: str | None
) -> Iterator[tuple[int | None, str | None, str | None, str, UsageSums]]:
    """Reads the sums for spans of one length, as from `split_spans`, of one tenant or all: day, tenant,
    model, shard and sums. Sums by model are not divided by day and have None as day.

    Raises sqlite3.Error.
    """
    values: list[Any] = [span, first, behind]
    of_tenant = ""
    if tenant is not None:
        of_tenant = " AND tenant = (SELECT id FROM name WHERE text = ?)"
        values.append(tenant)
    day = "NULL" if span < 0 else f"at / {DAY // span}"
    # The statement contains no external text.
    select = f"SELECT {day} AS day, tenant, model, shard, {_SELECT_SUMS}{of_tenant} GROUP BY day, tenant, model, shard"
    texts: dict[int, str | None] = {0: None}
    for of_day, *names, figures in ((*row[:4], row[4:]) for row in catalogue.execute(select, values)):
        for number in names:
            if number not in texts:
                texts[number] = catalogue.execute("SELECT text FROM name WHERE id = ?", (number,)).fetchone()[
                    0
                ]
        name, model, shard = (texts[number] for number in names)
        yield of_day, name, model, shard or "", UsageSums(*figures)


def days_of_admission(catalogue: sqlite3.Connection, tenant: str, origin: str, number: int) -> list[int]:
    """Returns the days that may have a tenant's admission with this number in a log. Raises sqlite3.Error."""
    found = catalogue.execute(
        "SELECT day FROM numbered WHERE log = (SELECT id FROM log WHERE origin = ?)"
        " AND tenant = (SELECT id FROM name WHERE text = ?) AND first <= ? AND last >= ?",
        (origin, tenant, number, number),
    )
    return [day for (day,) in found]
