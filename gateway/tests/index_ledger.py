"""A ledger with the test's records, and an index of it."""

from __future__ import annotations

import os
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

from signing import LEDGER, VKEY
from written_log import stored, write_log

from proofgate import _core
from proofgate.index.filter import Filter
from proofgate.index.indexer import Indexer
from proofgate.index.query import IndexSnapshot
from proofgate.index.totals import tenants
from proofgate.index.writer import IndexWriter

NAME = LEDGER.name
FIRST, SECOND = "01M89PCZT1JE2K4A4FYY15YK69", "01M89Q0V2S1R6T3Y8B5N7C4D9E"
#: 2026-11-25T12:00:00Z, in unix microseconds.
NOON = 1_795_608_000_000_000
DAY = 86_400_000_000


def own_id(number: int, ts: int = NOON) -> str:
    """A request id in the gateway's format: a UUID of version 7."""
    return f"req_{ts // 1000:012x}7abc8def{number:012x}"


class Log:
    """One log of a ledger."""

    def __init__(self, ledger: Path, incarnation: str = FIRST, shard: int = 0, **opened: Any) -> None:
        self.directory = ledger / str(shard) / incarnation
        self.directory.mkdir(parents=True)
        self.origin = f"{NAME}/{shard}/{incarnation}"
        self.records: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = defaultdict(int)
        self.add("open", NOON, ledger=NAME, shard=shard, incarnation=incarnation, **opened)

    def add(self, kind: str, ts: int, **fields: Any) -> int:
        self.records.append({"v": 1, "kind": kind, "seq": len(self.records), "ts": ts, **fields})
        return len(self.records) - 1

    def admit(self, number: int, ts: int = NOON, **other: Any) -> int:
        tenant = other.get("tenant", "acme")
        self._numbers[tenant] += 1
        usual = {
            "id": own_id(number, ts),
            "tenant": tenant,
            "tenant_seq": self._numbers[tenant],
            "key": "01234567",
        }
        named = {"model": "gpt", "provider": "openai", "endpoint": "/v1/chat/completions", "bytes": 5}
        return self.add("admission", ts, **(usual | named | other))

    def complete(self, number: int, admission: int, ts: int = NOON, **other: Any) -> int:
        usual = {
            "id": own_id(number, ts),
            "admission": admission,
            "status": 200,
            "outcome": "complete",
            "bytes": 7,
        }
        used = {
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            "cost_nanodollars": 9,
            "duration_us": 11,
        }
        return self.add("completion", ts + 11, **(usual | used | other))

    def exchange(self, number: int, ts: int = NOON, end: dict[str, Any] | None = None, **other: Any) -> int:
        admission = self.admit(number, ts, **other)
        self.complete(number, admission, ts, **(end or {}))
        return admission

    def refuse(self, number: int, ts: int = NOON, **other: Any) -> int:
        usual = {"id": own_id(number, ts), "tenant": "acme", "status": 403, "code": "policy_blocked"}
        return self.add("rejection", ts, **(usual | {"endpoint": None, "bytes": 5} | other))

    def deny(self, number: int, ts: int = NOON, **other: Any) -> int:
        """A request that a rule denied."""
        self._numbers["acme"] += 1
        named = {"tenant_seq": self._numbers["acme"], "key": "01234567", "model": "gpt"}
        return self.refuse(number, ts, code="policy_blocked", **(named | other))

    @property
    def stored(self) -> list[bytes]:
        """The log's records in their stored form."""
        return [stored(record) for record in self.records]

    def sign(self) -> str:
        """Signs a checkpoint for all records and returns it."""
        return write_log(self.directory, self.origin, self.stored)


def bring_up(index: Path, ledger: Path, most_records: int = 3, *, rebuild: bool = False) -> Indexer:
    """Updates an index to the signed records."""
    writer = IndexWriter.open(index, VKEY, rebuild=rebuild)
    try:
        indexer = Indexer(writer, VKEY, most_records)
        logs, problems = _core.ledger_logs(str(ledger), VKEY, writer.indexed_sizes())
        assert problems == []
        indexer.read(logs)
    finally:
        writer.close()
    return indexer


def rows(index: Path, asked: Filter | None = None) -> list[dict[str, Any]]:
    """The index's rows for the exchanges that match."""
    with IndexSnapshot(index) as questions:
        return [row.facts for row in questions.all_rows(asked or Filter())]


def abandon(writer: IndexWriter) -> None:
    """Closes a writer's files without further writes, as the system does for a killed process."""
    for day in writer._days.values():
        day.connection.close()
    writer._catalogue.close()
    os.close(writer._lock)


_COUNTED = ("refused", "denied", "blocked", "would_block", "redacted", "flagged")
#: By tenant and day: exchanges, exchanges of each counted verdict, open exchanges, tokens of prompts and of
#: responses, nanodollars, and exchanges that ended without a known cost.
Sums = dict[tuple[str | None, int], tuple[int, ...]]


def sums_told(index: Path, asked: Filter) -> Sums:
    """The sums by tenant and day, as readers get them."""
    names = ("exchanges", *_COUNTED, "open", "prompt_tokens", "completion_tokens")
    with IndexSnapshot(index) as questions:
        return {
            (of["tenant"], _day_of_name(day["day"])): tuple(
                day[name] for name in (*names, "cost_nanodollars", "unpriced")
            )
            for of in tenants(questions, asked)
            for day in of["days"]
        }


def sums_of_rows(index: Path, asked: Filter) -> Sums:
    """The same sums, computed from the rows."""
    found: dict[tuple[str | None, int], list[float]] = defaultdict(lambda: [0] * (len(_COUNTED) + 6))
    for row in rows(index, asked):
        of = found[row["tenant"], _day_of_name(row["time"][:10])]
        verdict, is_open = row["verdict"], row["outcome"] == "open"
        figures = (1, *(verdict == name for name in _COUNTED), is_open)
        amounts = [
            float(row[name] or 0) for name in ("prompt_tokens", "completion_tokens", "cost_nanodollars")
        ]
        unpriced = not is_open and verdict not in ("refused", "denied") and row["cost_nanodollars"] is None
        for at, figure in enumerate((*figures, *amounts, unpriced)):
            of[at] += figure
    return {key: tuple(map(int, figures)) for key, figures in found.items()}


def _day_of_name(name: str) -> int:
    return (date.fromisoformat(name) - date(1970, 1, 1)).days
