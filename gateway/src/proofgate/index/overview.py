"""An overview of a period: exchanges, denials, redactions and cost in equal steps, by tenant, model or
verdict, and the rules that matched. Only stored sums are read, independent of the number of exchanges."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from proofgate.index import sums
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot
from proofgate.index.schema import VERDICTS, format_time
from proofgate.index.sums import DAY, FIVE_MINUTES_MICROSECONDS, HOUR, SUM_COLUMNS, UsageSums, split_spans

#: Groupings of the series.
GROUPINGS = ("tenant", "model", "verdict")
#: Maximum number of separate series. The smaller series are combined.
MAX_SERIES = 7
#: Maximum number of rows in a table of the largest tenants, models or rules.
MAX_NAMES = 10
#: Maximum number of steps in a response.
MAX_STEPS = 800

_DAY_MICROSECONDS = DAY * FIVE_MINUTES_MICROSECONDS
#: Steps, and the longest period in microseconds for which each is used. Longer periods have steps of days.
_STEP_LIMITS = ((1, 6 * HOUR * FIVE_MINUTES_MICROSECONDS), (HOUR, 8 * _DAY_MICROSECONDS))
_DEFAULT_MICROSECONDS = _DAY_MICROSECONDS
#: Values of a series for each step.
_SERIES_FIELDS = ("exchanges", "denied", "redacted", "cost_nanodollars")
_COUNTED_FIELDS = (*VERDICTS[1:], "open", "prompt_tokens", "completion_tokens", "unpriced")


def overview(questions: IndexSnapshot, asked: Filter, by: str, now: int | None = None) -> dict[str, Any]:
    """Returns the overview of a period, extended to whole steps, of one tenant or all. Without `since`, the
    period is the last day before `now` (Unix microseconds).

    The result has `since`, `until`, `step_seconds`, `totals`, the largest `tenants`, `models` and `rules`,
    and `series`. Each series has a `name` (null for exchanges without one; also null, with `others`, for the
    combined rest) and for each step `exchanges`, `denied`, `redacted` and `cost_nanodollars` (by verdict,
    only `exchanges`).

    Raises IndexUnusableError (`bad_filter`).
    """
    if by not in GROUPINGS:
        raise IndexUnusableError(f"by must be one of {', '.join(GROUPINGS)}", "bad_filter")
    now = time.time_ns() // 1000 if now is None else now
    until = now if asked.until is None else asked.until
    since = until - _DEFAULT_MICROSECONDS if asked.since is None else asked.since
    if since >= until:
        raise IndexUnusableError("since must be before until", "bad_filter")
    step = next((step for step, most in _STEP_LIMITS if until - since <= most), DAY)
    length = step * FIVE_MINUTES_MICROSECONDS
    first, behind = since // length, -(-until // length)
    if behind - first > MAX_STEPS:
        raise IndexUnusableError(
            f"the result has more than {MAX_STEPS} days: choose a shorter time", "bad_filter"
        )
    if questions.pruned_before is not None:
        # Removed days are excluded. The page shows the start of the remaining data.
        first = max(first, questions.pruned_before * DAY // step)
    questions.require_retained(replace(asked, since=first * length, until=behind * length))
    of = _StepSums(questions, step, first, behind, asked.tenant)
    tenants, models = of.totals_by("tenant"), of.totals_by("model")
    totals = UsageSums()
    for used in tenants.values():
        totals.add(used)
    return {
        "since": format_time(first * length),
        "until": format_time(behind * length),
        "step_seconds": length // 1_000_000,
        "by": by,
        "series": of.verdicts() if by == "verdict" else of.series(by, tenants if by == "tenant" else models),
        "totals": _figures(totals),
        "tenants": _largest("tenant", tenants),
        "models": _largest("model", models),
        "rules": of.rules(),
    }


def _figures(used: UsageSums) -> dict[str, int]:
    counted = {name: int(getattr(used, name)) for name in ("exchanges", *_COUNTED_FIELDS)}
    return {**counted, "cost_nanodollars": int(used.cost)}


def _rank(used: UsageSums) -> tuple[float, int]:
    return used.cost, used.exchanges


def _largest(name: str, of: dict[str | None, UsageSums]) -> list[dict[str, Any]]:
    names = sorted(of, key=lambda one: (_rank(of[one]), one or ""), reverse=True)
    return [{name: one, **_figures(of[one])} for one in names[:MAX_NAMES]]


class _StepSums:
    """The sums of a number of steps, of one tenant or all."""

    def __init__(
        self, questions: IndexSnapshot, step: int, first: int, behind: int, tenant: str | None
    ) -> None:
        self._questions, self._step, self._first, self._steps = questions, step, first, behind - first
        self._tenant = tenant
        length = step * FIVE_MINUTES_MICROSECONDS
        #: The whole period, divided into the longest spans with stored sums, for totals.
        self._parts = list(split_spans(first * length, behind * length))

    def _select(self, what: str, column: str) -> list[tuple[Any, ...]]:
        """Returns the sums of each step (`at`), grouped by a column of `used` (`tenant` or `model`) unless it
        is empty."""
        part = (self._step, self._first, self._first + self._steps)
        return self._select_part(what, column, f"at, {column}" if column else "at", part)

    def _select_part(
        self, what: str, column: str, groups: str, part: tuple[int, int, int], table: str = "used"
    ) -> list[tuple[Any, ...]]:
        span, first, behind = part
        values = sums.one_tenant_values(-span if column == "model" else span, first, behind, self._tenant)
        where = sums.ONE_TENANT_CONDITION
        if column == "tenant" and self._tenant is None:
            values, where = values[:3], sums.EACH_TENANT_CONDITION
        # The statement contains no external text.
        select = f"SELECT {what} FROM {table} WHERE {where} GROUP BY {groups}"  # noqa: S608
        return self._questions.query_catalogue(select, values)

    def _names(self, numbers: set[int]) -> dict[int, str | None]:
        found: dict[int, str | None] = {0: None}
        for number in numbers - {0}:
            rows = self._questions.query_catalogue("SELECT text FROM name WHERE id = ?", [number])
            found[number] = rows[0][0]
        return found

    def totals_by(self, column: str) -> dict[str | None, UsageSums]:
        """Returns the totals of all steps, by tenant or model."""
        found: dict[int, UsageSums] = {}
        for part in self._parts:
            rows = self._select_part(f"{column}, {SUM_COLUMNS}", column, column, part)
            for number, *figures in rows:
                found.setdefault(number, UsageSums()).add(UsageSums(*figures))
        names = self._names(set(found))
        return {names[number]: used for number, used in found.items()}

    def series(self, column: str, largest: dict[str | None, UsageSums]) -> list[dict[str, Any]]:
        """Returns one series for each of the largest tenants or models, and one for all others."""
        what = f"at, {column}, sum(exchanges), sum(denied) + sum(blocked), sum(redacted), sum(cost)"
        rows = self._select(what, column)
        names = self._names({row[1] for row in rows})
        told = sorted(largest, key=lambda one: (_rank(largest[one]), one or ""), reverse=True)[:MAX_SERIES]
        found = {one: self._empty(one) for one in told}
        others = {**self._empty(None), "others": True}
        # There are thousands of rows, so the lists of each name are looked up once.
        lists = {
            number: [found.get(name, others)[figure] for figure in _SERIES_FIELDS]
            for number, name in names.items()
        }
        first = self._first
        for at, number, exchanges, denied, redacted, cost in rows:
            step, of = at - first, lists[number]
            of[0][step] += exchanges
            of[1][step] += denied
            of[2][step] += redacted
            of[3][step] += int(cost)
        return [*found.values(), *([others] if len(largest) > MAX_SERIES else [])]

    def _empty(self, name: str | None) -> dict[str, Any]:
        return {"name": name, **{figure: [0] * self._steps for figure in _SERIES_FIELDS}}

    def verdicts(self) -> list[dict[str, Any]]:
        """Returns the number of exchanges in each step, by verdict."""
        counted = ", ".join(f"sum({name})" for name in VERDICTS[1:])
        rows = self._select(f"at, sum(exchanges), {counted}", "")
        found = {name: [0] * self._steps for name in VERDICTS}
        for at, exchanges, *counts in rows:
            for name, figure in zip(VERDICTS, (exchanges - sum(counts), *counts), strict=True):
                found[name][at - self._first] = figure
        return [{"name": name, "exchanges": steps} for name, steps in found.items() if any(steps)]

    def rules(self) -> list[dict[str, Any]]:
        """Returns the rules that matched most often: the number of exchanges, and how many of these were
        denied or redacted."""
        found: dict[int, list[int]] = {}
        for part in self._parts:
            what = "rule, sum(exchanges), sum(denied), sum(redacted)"
            for rule, *figures in self._select_part(what, "", "rule", part, "ruled"):
                of = found.setdefault(rule, [0, 0, 0])
                of[:] = map(sum, zip(of, figures, strict=True))
        rows = sorted(
            ((rule, *figures) for rule, figures in found.items()),
            key=lambda row: (row[2], row[1]),
            reverse=True,
        )[:MAX_NAMES]
        names = self._names({row[0] for row in rows})
        return [
            {"rule": names[rule], "exchanges": exchanges, "denied": denied, "redacted": redacted}
            for rule, exchanges, denied, redacted in rows
            if exchanges
        ]
