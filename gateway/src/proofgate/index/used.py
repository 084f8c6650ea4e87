"""What the exchanges of a time come to: days and hours that are added up already, and rows at their edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from proofgate.index import sums
from proofgate.index.filter import Filter
from proofgate.index.query import Questions
from proofgate.index.schema import BLOCKED, DENIED, FLAGGED, REDACTED, REFUSED, WOULD_BLOCK
from proofgate.index.sums import Used

#: No exchange of an index began then or later, in unix microseconds: the end of the year 9999.
_END = 253_402_300_800_000_000
#: In the order of `sums.Used`.
_COUNTED = (REFUSED, DENIED, BLOCKED, WOULD_BLOCK, REDACTED, FLAGGED)
_OF_ROWS = f"""
SELECT (SELECT text FROM text WHERE id = tenant), (SELECT text FROM text WHERE id = model), log, count(*),
  {", ".join(f"sum(verdict = {number})" for number in _COUNTED)}, sum(end_seq IS NULL), total(prompt_tokens),
  total(completion_tokens), total(cost),
  sum(verdict NOT IN ({REFUSED}, {DENIED}) AND end_seq IS NOT NULL AND cost IS NULL),
  max(CASE WHEN verdict NOT IN ({REFUSED}, {DENIED}) THEN ts END)
FROM exchange WHERE"""  # noqa: S608 - numbers of ours


def used_by_day(questions: Questions, asked: Filter) -> Iterator[tuple[int, str | None, str, Used]]:
    """What the exchanges of a time, of one tenant or all, come to: day, tenant (None for refusals of
    nobody's), shard and sums. Several may have the same names.

    Raises IndexUnusableError.
    """
    for day, tenant, _, shard, used in _used(questions, asked, sums.SPANS, "GROUP BY tenant, log"):
        if day is not None:
            yield day, tenant, shard, used


def used_by_model(questions: Questions, asked: Filter) -> Iterator[tuple[str | None, str | None, str, Used]]:
    """The same by tenant, model and shard.

    Raises IndexUnusableError.
    """
    for _, *names, used in _used(questions, asked, sums.SPANS_BY_MODEL, "GROUP BY tenant, model, log"):
        tenant, model, shard = names
        yield tenant, model, shard or "", used


def _used(
    questions: Questions, asked: Filter, spans: tuple[int, ...], groups: str
) -> Iterator[tuple[int | None, str | None, str | None, str, Used]]:
    questions.require_kept(asked)
    begin = 0 if asked.since is None else asked.since
    end = _END if asked.until is None else asked.until
    for span, first, behind in sums.split(begin, end, spans):
        if span:
            yield from questions.added_up(span, first, behind, asked.tenant)
            continue
        of_rows = replace(asked, since=first, until=behind)
        for day, (tenant, model, log, *figures) in questions.sums(of_rows, _OF_ROWS, [], groups):
            origin = questions.origin(log)
            if origin is not None:
                yield day, tenant, model, origin.split("/")[-2], Used(*figures)
