"""Results of the analysis of responses: the windows of each tenant and model, and flagged responses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from proofgate.index.days import decode_request_id
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot
from proofgate.index.schema import format_time

#: Maximum number of records in a response; the newest are returned.
MAX_RECORDS = 2000

_SELECT = """
SELECT ts, log, seq, id, (SELECT text FROM text WHERE id = tenant), (SELECT text FROM text WHERE id = model),
  (SELECT texts FROM list WHERE id = findings), entropy, repetition, stretch, number, answers, length,
  refusal, cut, tests
FROM analysis WHERE"""
_NEWEST = "ORDER BY ts DESC, log DESC, seq DESC LIMIT ?"


def read_analysis(questions: IndexSnapshot, asked: Filter) -> dict[str, Any]:
    """Reads the recorded results, filtered by tenant, model and time: `windows` and flagged `answers`, oldest
    first, and whether older ones exist (`more`). Numbers are in the units of the records
    (docs/reference/records.md, `analysis`).

    Raises IndexUnusableError.
    """
    found: list[dict[str, Any]] = []
    windows: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    for _, row in questions.query_days(replace(asked, newest=True), _SELECT, [], _NEWEST, [MAX_RECORDS + 1]):
        (ts, log, seq, own_id, tenant, model, findings, entropy, repetition, stretch), rest = (
            row[:10],
            row[10:],
        )
        told = {
            "time": format_time(ts),
            "tenant": tenant,
            "model": model,
            "record": {"origin": questions.origin(log), "index": seq},
            "exchange": decode_request_id(own_id),
            "findings": json.loads(findings) if findings else [],
            "entropy_millibits": entropy,
            "repetition_permille": repetition,
        }
        found.append(told)
        if len(found) > MAX_RECORDS:
            break
        if rest[0] is None:
            answers.append({**told, "stretch_permille": stretch})
            continue
        names = ("number", "answers", "length_millitokens", "refusal_permille", "cut_permille")
        windows.append({**told, **dict(zip(names, rest, strict=False)), "tests": _tests(rest[-1])})
    more = len(found) > MAX_RECORDS
    return {"windows": windows[::-1], "answers": answers[::-1], "more": more}


def _tests(text: str) -> list[Any]:
    try:
        tests = json.loads(text)
    except (ValueError, RecursionError):
        tests = None
    if not isinstance(tests, list):
        raise IndexUnusableError("the index contains invalid test results", "index_damaged")
    return tests
