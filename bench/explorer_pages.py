"""Measures how fast the explorer's pages are answered over many exchanges: `python -m bench.explorer_pages`.

    python -m bench.explorer_pages --exchanges 1000000 --days 30

The index's own writer makes the index from invented batches, without a ledger: 40 tenants, six models, four shards, a
rule in a tenth of the exchanges, sessions of 20. Then each query of a page runs 15 times as in the auditor's port: it
opens the index, runs and closes the index. The program prints the median and the slowest time in milliseconds,
including making the JSON, and the processor time, which other programs do not affect. It writes nothing to
bench/results.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from proofgate.index.filter import Filter
from proofgate.index.known_names import known_names
from proofgate.index.overview import GROUPINGS, overview
from proofgate.index.query import IndexSnapshot
from proofgate.index.totals import tenants
from proofgate.index.usage import usage_by_model
from proofgate.index.writer import IndexWriter

KEY = "proofgate.dev/bench+00000000+AAAA"
#: 2026-11-25T12:00:00Z.
END = 1_795_608_000_000_000
DAY = 86_400_000_000
FIVE_MINUTES = 300_000_000
TIMES = 15
A_BATCH = 20_000
_TENANTS, _MODELS, _SHARDS, _KEY_NAMES = 40, 6, 4, 5
_RULES = ("pii-card", "pii-email", "codename", "injection", "secrets")


class Batch:
    """Exchanges in the format of the core's batches (`proofgate/_core.pyi`, ExchangeBatch)."""

    sealed, configuration_change, ended = False, None, ()

    def __init__(self, number: int, begin: int, length: int, count: int, chance: random.Random) -> None:
        self.size, self.place = (number + 1) * A_BATCH, "0 0 0 0 "
        self._first = number * A_BATCH
        times = sorted(begin + chance.randrange(length) for _ in range(count))
        self._days: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for at, ts in enumerate(times):
            self._days[ts // DAY].append((self._first + at, ts))
        self._chance = chance
        self._made: dict[int, list[tuple[Any, ...]]] = {}
        names = [f"tenant-{of:02}" for of in range(_TENANTS)] + [f"model-{of}" for of in range(_MODELS)]
        names += [*_RULES, "openai", "/v1/chat/completions", "complete", "policy_blocked", "rate_limited"]
        self._names = names + [f"key-{of:02}" for of in range(_TENANTS)] + [f"name-{of}" for of in range(_KEY_NAMES)]
        self._of = {name: at for at, name in enumerate(self._names)}
        self._sessions = [f"session-{number}-{of}" for of in range(max(count // 20, 1))]
        for day, found in self._days.items():
            self._made[day] = [self._exchange(seq, ts) for seq, ts in found]

    def _exchange(self, seq: int, ts: int) -> tuple[Any, ...]:
        chance = self._chance
        tenant = min(int(chance.expovariate(0.15)), _TENANTS - 1)
        model = self._of[f"model-{min(int(chance.expovariate(0.8)), _MODELS - 1)}"]
        drawn = chance.random()
        key = self._of[f"key-{tenant:02}"]
        session = len(self._names) + chance.randrange(len(self._sessions))
        identity = ts.to_bytes(8, "big") + seq.to_bytes(8, "big")
        if drawn < 0.04:
            rules = None if drawn < 0.02 else 1 + chance.randrange(len(_RULES))
            outcome = self._of["rate_limited" if drawn < 0.02 else "policy_blocked"]
            end = (seq, 403, outcome, None, None, None, None, None)
            return (ts, seq, identity, tenant, None, key, None, None, 5, rules, 900, *end, None)
        rules = 1 + chance.randrange(len(_RULES)) if drawn < 0.1 else None
        cost, tokens = chance.randrange(50_000_000), chance.randrange(2000)
        tail = (seq, 200, self._of["complete"], tokens, tokens // 4, cost, 4000, 900_000)
        return (ts, seq, identity, tenant, seq, key, model, 0, 0 if rules is None else 2, rules, 900, *tail, session)

    def days(self) -> list[int]:
        return sorted(self._days)

    def texts(self, day: int) -> list[str]:
        return [*self._names, *self._sessions]

    def lists(self, day: int) -> list[list[int]]:
        return [[self._of["openai"]], *([self._of[rule]] for rule in _RULES)]

    def rows(self, day: int, texts: list[int], lists: list[int], log: int, version: int) -> list[tuple[Any, ...]]:
        endpoint = texts[self._of["/v1/chat/completions"]]
        rows: list[tuple[Any, ...]] = []
        for ts, seq, own, tenant, number, key, model, providers, verdict, rules, size, *end, session in self._made[day]:
            end_seq, status, outcome, *figures = end
            named = (None if one is None else texts[one] for one in (tenant,))
            rows.append(
                (
                    *(ts, log, seq, own, *named, number, texts[key], None if model is None else texts[model]),
                    None if providers is None else lists[providers],
                    *(endpoint, verdict, None if rules is None else lists[rules], size, version),
                    *(log, end_seq, status, texts[outcome], *figures),
                    None if session is None else texts[session],
                    *(None, None, None, None, None, None, texts[self._of[f"name-{tenant % _KEY_NAMES}"]]),
                )
            )
        return rows

    def sums(self, day: int) -> list[Any]:
        found: dict[tuple[int, int, int | None], list[float]] = defaultdict(lambda: [0.0] * 6)
        for row in self._made[day]:
            ts, tenant, model, verdict = row[0], row[3], row[6], row[8]
            of = found[ts // FIVE_MINUTES, tenant, model]
            of[0] += 1
            of[1] += verdict == 5
            for at, figure in enumerate(row[14:17]):
                of[2 + at] += figure or 0
            of[5] = max(of[5], ts if verdict != 5 else 0)
        name = self._names.__getitem__
        return [
            (
                (at, name(tenant), None if model is None else name(model)),
                (int(of[0]), int(of[1]), 0, 0),
                tuple(of[2:5]),
                (0, int(of[5]) or None),
            )
            for (at, tenant, model), of in found.items()
        ]

    def request_number_ranges(self, day: int) -> list[tuple[str, int, int]]:
        return []

    def minutes(self, day: int, texts: list[int], lists: list[int]) -> tuple[Any, ...]:
        held: set[tuple[int, int, int]] = set()
        hours: set[tuple[int, int, int, int]] = set()
        for row in self._made[day]:
            ts, tenant, key, model, providers, rules = row[0], row[3], row[5], row[6], row[7], row[9]
            name = texts[self._of[f"name-{tenant % _KEY_NAMES}"]]
            numbers = [(0, texts[key]), (3, texts[row[13]]), (5, name)]
            numbers += [] if model is None else [(1, texts[model])]
            numbers += [] if providers is None else [(2, lists[providers])]
            numbers += [] if rules is None else [(4, lists[rules])]
            held |= {(column, number, ts // 60_000_000) for column, number in numbers}
            hours |= {(texts[tenant], column, number, ts // 3_600_000_000) for column, number in numbers if column}
        return list(held), [], list(hours), []

    def attempts(self, day: int, texts: list[int]) -> list[Any]:
        return []

    def analysed(self, day: int, texts: list[int], lists: list[int], log: int, version: int) -> list[Any]:
        return []

    def open_admissions(self) -> list[Any]:
        return []

    def late_records(self) -> list[str]:
        return []


def make(index: Path, exchanges: int, days: int) -> None:
    """Makes an index."""
    chance = random.Random(1)
    writer = IndexWriter.open(index, KEY)
    batches = -(-exchanges // A_BATCH)
    length = days * DAY // batches
    try:
        for number in range(batches):
            batch: Any = Batch(number, END - days * DAY + number * length, length, A_BATCH, chance)
            writer.apply(f"proofgate.dev/bench/{number % _SHARDS}/01M89PCZT1JE2K4A4FYY15YK69", "", batch)
    finally:
        writer.close()


def overview_of(since: Filter, by: str, questions: IndexSnapshot) -> Any:
    """The queries of the landing page."""
    return overview(questions, since, by, END)


def facts_of(page: Filter, questions: IndexSnapshot) -> list[Any]:
    """A page of exchanges."""
    return [row.facts for row in questions.page(page, 50).rows]


def asked(index: Path, days: int) -> dict[str, Callable[[], Any]]:
    """The queries of the pages."""

    def of(ask: Callable[[IndexSnapshot], Any]) -> Callable[[], Any]:
        def once() -> Any:
            with IndexSnapshot(index, 10.0) as questions:
                return ask(questions)

        return once

    found: dict[str, Callable[[], Any]] = {}
    for name, length in (("hour", DAY // 24), ("day", DAY), ("7 days", 7 * DAY), (f"{days} days", days * DAY)):
        for by in GROUPINGS:
            since = Filter(since=END - length, until=END)
            found[f"overview, {name}, by {by}"] = of(partial(overview_of, since, by))
    one = Filter(since=END - days * DAY, until=END, tenant="tenant-03")
    found[f"overview, {days} days, one tenant"] = of(lambda q: overview(q, one, "model", END))
    found["names for pickers"] = of(known_names)
    found["names for pickers, one tenant"] = of(lambda q: known_names(q, "tenant-03"))
    for name, filters in (
        ("newest", {}),
        ("denied", {"verdict": "denied"}),
        ("a rule", {"rule": "codename"}),
        ("a tenant's denied", {"tenant": "tenant-03", "verdict": "denied"}),
        ("a session", {"session": "session-3-7"}),
    ):
        page = Filter.parse(filters, newest=True)
        found[f"exchanges, {name}"] = of(partial(facts_of, page))
    since = Filter(since=END - 7 * DAY, until=END)
    found["tenants, 7 days"] = of(lambda q: tenants(q, since))
    month = Filter(since=(END // DAY - 24) * DAY, until=(END // DAY + 1) * DAY)
    found["budgets: a month by model"] = of(lambda q: [vars(used) for *_, used in usage_by_model(q, month)])
    return found


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--days", type=int, default=30, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proofgate-pages-") as folder:
        index = Path(folder) / "index"
        began = time.perf_counter()
        make(index, options.exchanges, options.days)
        size = sum(path.stat().st_size for path in index.iterdir())
        print(f"made in {time.perf_counter() - began:.0f} s, {size / options.exchanges:.0f} bytes an exchange")
        for name, ask in asked(index, options.days).items():
            took, worked = [], []
            for _ in range(TIMES):
                began, work = time.perf_counter(), time.process_time()
                json.dumps(ask())
                took.append((time.perf_counter() - began) * 1000)
                worked.append((time.process_time() - work) * 1000)
            print(
                f"{name:36} median {statistics.median(took):7.1f} ms, slowest {max(took):7.1f} ms,"
                f" processor {statistics.median(worked):6.1f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
