"""Sums over the exchanges of a period, from stored sums of days and hours, and from rows at the edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from proofgate.index import sums
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot
from proofgate.index.schema import BLOCKED, DENIED, FLAGGED, REDACTED, REFUSED, WOULD_BLOCK
from proofgate.index.sums import UsageSums

#: Upper limit of the start time of exchanges, in Unix microseconds: the end of the year 9999.
_TIMESTAMP_LIMIT = 253_402_300_800_000_000
#: Verdicts that are counted, in the order of the fields of `sums.UsageSums`.
_COUNTED_VERDICTS = (REFUSED, DENIED, BLOCKED, WOULD_BLOCK, REDACTED, FLAGGED)
_SELECT_ROW_SUMS = f"""
SELECT (SELECT text FROM text WHERE id = tenant), (SELECT text FROM text WHERE id = model), log, count(*),
  {", ".join(f"sum(verdict = {number})" for number in _COUNTED_VERDICTS)}, sum(end_seq IS NULL), total(prompt_tokens),
  total(completion_tokens), total(cost),
  sum(verdict NOT IN ({REFUSED}, {DENIED}) AND end_seq IS NOT NULL AND cost IS NULL),
  max(CASE WHEN verdict NOT IN ({REFUSED}, {DENIED}) THEN ts END)
FROM exchange WHERE"""  # noqa: S608 - numbers of ours


def usage_by_day(questions: IndexSnapshot, asked: Filter) -> Iterator[tuple[int, str | None, str, UsageSums]]:
    """Yields the sums over the exchanges of a period, of one tenant or all: day, tenant (None for refusals
    without a tenant), shard and sums. Several items may have the same day, tenant and shard.

    Raises IndexUnusableError.
    """
    for day, tenant, _, shard, used in _sum_usage(questions, asked, sums.SPANS, "GROUP BY tenant, log"):
        if day is not None:
            yield day, tenant, shard, used


def usage_by_model(
    questions: IndexSnapshot, asked: Filter
) -> Iterator[tuple[str | None, str | None, str, UsageSums]]:
    """Yields the sums over the exchanges of a period by tenant, model and shard.

    Raises IndexUnusableError.
    """
    for _, *names, used in _sum_usage(questions, asked, sums.SPANS_BY_MODEL, "GROUP BY tenant, model, log"):
        tenant, model, shard = names
        yield tenant, model, shard or "", used


def _sum_usage(
    questions: IndexSnapshot, asked: Filter, spans: tuple[int, ...], groups: str
) -> Iterator[tuple[int | None, str | None, str | None, str, UsageSums]]:
    questions.require_retained(asked)
    begin = 0 if asked.since is None else asked.since
    end = _TIMESTAMP_LIMIT if asked.until is None else asked.until
    for span, first, behind in sums.split_spans(begin, end, spans):
        if span:
            yield from questions.read_sums(span, first, behind, asked.tenant)
            continue
        of_rows = replace(asked, since=first, until=behind)
        for day, (tenant, model, log, *figures) in questions.query_days(
            of_rows, _SELECT_ROW_SUMS, [], groups
        ):
            origin = questions.origin(log)
            if origin is not None:
                yield day, tenant, model, origin.split("/")[-2], UsageSums(*figures)
