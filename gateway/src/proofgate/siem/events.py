"""Events about the ended exchanges in a batch of a log, with the same facts as in an index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofgate import _core
from proofgate.index.days import decode_request_id
from proofgate.index.denials import effective_verdict
from proofgate.index.facts import exchange_facts
from proofgate.index.schema import VERDICTS, format_time

_MAX_INTEGER = (1 << 63) - 1


@dataclass(frozen=True)
class ExchangeEvent:
    """One ended exchange, or a refusal. It is identified by the position of its last record."""

    time: int
    """When the exchange was admitted or refused, in Unix microseconds."""
    origin: str
    index: int
    facts: dict[str, Any]
    """The fields of the exchange in `GET /v1/exchanges`, without `records`."""


#: A function that returns stored records by incarnation (None: the log itself) and numbers; empty for a log
#: that is unknown or was removed.
RecordFetcher = Callable[[str | None, list[int]], dict[int, bytes]]


def events_in(batch: _core.ExchangeBatch, origin: str, fetch: RecordFetcher) -> Iterator[ExchangeEvent]:
    """Yields the exchanges that ended in a batch of a log. Raises the core's LedgerError."""
    for day in batch.days():
        texts, lists = batch.texts(day), batch.lists(day)
        named = [[texts[number] for number in numbers] for numbers in lists]
        for row in batch.rows(day, list(range(len(texts))), list(range(len(lists))), 0, 0):
            event = _event_from_row(row, origin, texts, named)
            if event is not None:
                yield event
    yield from _events_started_earlier(batch, origin, fetch)


def _event_from_row(
    row: tuple[Any, ...], origin: str, texts: list[str], lists: list[list[str]]
) -> ExchangeEvent | None:
    ts, _, _, own_id, tenant, tenant_seq, key, model, providers, endpoint, verdict, rules, size = row[:13]
    _, _, end_seq, status, outcome, prompt, completion, cost, answer, duration = row[13:23]
    session, end_user, agent, parent_agent, trace_id, end_user_name, client_address, key_name = row[23:]
    if end_seq is None:
        return None

    def text(number: int | None) -> str | None:
        return None if number is None else texts[number]

    told = {
        "id": decode_request_id(own_id),
        "time": format_time(ts),
        "tenant": text(tenant),
        "tenant_seq": tenant_seq,
        "key": text(key),
        "key_name": text(key_name),
        "model": text(model),
        "providers": [] if providers is None else lists[providers],
        "endpoint": text(endpoint),
        "verdict": VERDICTS[effective_verdict(verdict, text(outcome))],
        "rules": [] if rules is None else lists[rules],
        "outcome": text(outcome),
        "status": status,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cost_nanodollars": cost,
        "request_bytes": size,
        "response_bytes": answer,
        "duration_us": duration,
        "session": text(session),
        "end_user": text(end_user),
        "end_user_name": text(end_user_name),
        "agent": text(agent),
        "parent_agent": text(parent_agent),
        "trace_id": None if trace_id is None else trace_id.hex(),
        "client_address": text(client_address),
    }
    return ExchangeEvent(ts, origin, end_seq, told)


def _events_started_earlier(
    batch: _core.ExchangeBatch, origin: str, fetch: RecordFetcher
) -> Iterator[ExchangeEvent]:
    """Yields the exchanges that ended in a batch but started earlier or in another log. Both of their records
    are read."""
    ends = [late for late in map(json.loads, batch.late_records()) if late["kind"] == "end"]
    if not ends:
        return
    own = {late["seq"] for late in ends}
    own |= {late["admission"] for late in ends if late["incarnation"] is None}
    records: dict[str | None, dict[int, bytes]] = {None: fetch(None, sorted(own))}
    for incarnation in sorted({late["incarnation"] for late in ends} - {None}):
        wanted = {late["admission"] for late in ends if late["incarnation"] == incarnation}
        records[incarnation] = fetch(incarnation, sorted(wanted))
    for late in ends:
        end = json.loads(records[None][late["seq"]])
        stored = records[late["incarnation"]].get(late["admission"])
        admission = None if stored is None else json.loads(stored)
        # If the log of the start was removed, only the end is known.
        told = (
            {"id": late["id"], "outcome": late["outcome"]}
            if admission is None
            else {name: _clamp(value) for name, value in exchange_facts([admission, end]).items()}
        )
        time = _clamp(int(end["ts"] if admission is None else admission["ts"]))
        yield ExchangeEvent(time, origin, late["seq"], told)


def _clamp(value: Any) -> Any:
    """Limits a number to the largest value, as an index does."""
    return min(value, _MAX_INTEGER) if isinstance(value, int) else value


def record_fetcher(
    directory: Path, origin: str, ledger_key: str, notes: Callable[[str], str | None]
) -> RecordFetcher:
    """Returns a function that reads records of a log and of other logs of its shard, if `notes` returns a
    signed note for their origin."""

    def fetch(incarnation: str | None, numbers: list[int]) -> dict[int, bytes]:
        of_it = origin if incarnation is None else f"{origin.rpartition('/')[0]}/{incarnation}"
        note = notes(of_it)
        if note is None:
            return {}
        folder = directory if incarnation is None else directory.with_name(incarnation)
        size = int(note.split("\n", 2)[1])
        known = [number for number in numbers if number < size]
        try:
            found = _core.log_records(str(folder), note, ledger_key, known)
        except _core.LedgerError as error:
            if incarnation is not None and error.code in ("log_removed", "ledger_not_found"):
                return {}
            raise
        return {number: record for number, (record, _) in zip(known, found, strict=True)}

    return fetch
