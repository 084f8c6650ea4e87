"""Reads the stored records of an index's exchanges from the ledger, each with its path to a signed root."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proofgate import _core
from proofgate.index.errors import IndexUnusableError
from proofgate.index.query import ExchangeRow, IndexSnapshot
from proofgate.index.schema import DENIED, VERDICTS
from proofgate.key_statements import chain_statements

_END_KINDS = ("completion", "aborted", "rejection")


def rows_with_records(
    questions: IndexSnapshot,
    ledger: Path,
    rows: list[ExchangeRow],
    unreadable: Callable[[str, _core.LedgerError], None] | None = None,
) -> Iterator[tuple[ExchangeRow, list[dict[str, Any]]]]:
    """Yields the rows, each with its records in order: `origin`, `index`, `record` (the stored text) and
    `path`.

    Records that were added after the index was opened are left out. If `unreadable` is set, it is called with
    each log that contradicts the index and the error, and the rows of these logs are left out.

    Raises IndexUnusableError (`index_damaged`), and without `unreadable` the core's LedgerError.
    """
    wanted: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        for origin, number in row.records:
            wanted[origin].add(number)
    found: dict[tuple[str, int], dict[str, Any]] = {}
    left_out: set[str] = set()
    for origin, numbers in wanted.items():
        note = questions.note(origin)
        covered = 0 if note is None else int(note.split("\n", 2)[1])
        # The end of an exchange may have been indexed since the query started.
        ascending = sorted(number for number in numbers if number < covered)
        if not ascending or note is None:
            continue
        directory = ledger.joinpath(*origin.split("/")[-2:])
        try:
            stored = _core.log_records(str(directory), note, questions.ledger_key, ascending)
        except _core.LedgerError as error:
            if unreadable is None:
                raise
            unreadable(origin, error)
            left_out.add(origin)
            continue
        for number, (record, path) in zip(ascending, stored, strict=True):
            hashes = [base64.b64encode(entry).decode() for entry in path]
            found[origin, number] = {
                "origin": origin,
                "index": number,
                "record": record.decode(),
                "path": hashes,
            }
    for row in rows:
        if any(origin in left_out for origin, _ in row.records):
            continue
        records = [found[place] for place in row.records if place in found]
        if not records or (records[0]["origin"], records[0]["index"]) != row.records[0]:
            raise IndexUnusableError(
                f"the index names record {row.records[0][1]} of {row.records[0][0]}, but no "
                "checkpoint in the index covers that record: `proofgate audit index --rebuild` "
                "rebuilds the index",
                "index_damaged",
            )
        yield row, records


def receipt(questions: IndexSnapshot, ledger: Path, row: ExchangeRow) -> dict[str, Any]:
    """Returns one exchange as a receipt (docs/how-to/verify-receipts.md), without its tenant's salts.

    The additional field `denied` says whether a policy denied the request. No signature covers it.

    Raises the same errors as `rows_with_records`.
    """
    [(_, records)] = rows_with_records(questions, ledger, [row])
    kinds = [json.loads(of["record"])["kind"] for of in records]
    shown = [
        {"kind": kind, "index": of["index"], "record": of["record"], "proof": _proof(questions, of)}
        for kind, of in zip(kinds, records, strict=True)
    ]
    return {
        "object": "receipt",
        "id": row.facts["id"],
        "complete": any(kind in _END_KINDS for kind in kinds),
        "denied": row.facts["verdict"] == VERDICTS[DENIED],
        "origins": sorted({of["origin"] for of in records}),
        "records": shown,
        "consistency": [],
        **successions(questions, ledger),
        "vkey_hint": questions.ledger_key,
    }


def successions(questions: IndexSnapshot, ledger: Path) -> dict[str, list[str]]:
    """Returns the statements of succession of the ledger's keys; empty if the ledger has had only one key.

    Raises OSError.
    """
    notes = [note for _, note in chain_statements(ledger, questions.ledger_key)]
    return {"key_successions": notes} if notes else {}


def _proof(questions: IndexSnapshot, record: dict[str, Any]) -> str:
    """Formats the c2sp.org/tlog-proof of a record."""
    head = ["c2sp.org/tlog-proof@v1", f"index {record['index']}", *record["path"]]
    return "\n".join(head) + "\n\n" + str(questions.note(record["origin"]))
