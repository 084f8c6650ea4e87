"""Running sums equal the sums of the rows, for any time range."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from index_ledger import DAY, FIRST, NOON, SECOND, Log, bring_up, sums_of_rows, sums_told
from signing import VKEY

from proofgate.index import schema
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot
from proofgate.index.sums import FIVE_MINUTES_MICROSECONDS, SPANS, split_spans
from proofgate.index.writer import IndexWriter

MINUTE = 60_000_000
BEGIN = NOON // DAY * DAY
Times = list[tuple[int | None, int | None]]


def note(chance: random.Random) -> dict[str, object] | None:
    """A policy note with matched rules, or None."""
    rules = [rule for rule in ("pii", "secrets", "injection") if chance.random() < 0.3]
    redacted, would_block = chance.random() < 0.5, chance.random() < 0.2
    return {"rules": rules, "redacted": redacted, "would_block": would_block} if rules else None


def written(ledger: Path, chance: random.Random) -> None:
    """Writes two shards over four days; exchanges end late, by a successor, or never."""
    logs = [Log(ledger), Log(ledger, SECOND, shard=1)]
    later = Log(ledger, SECOND, predecessor={"incarnation": FIRST, "size": 1 << 20})
    begun: list[tuple[Log, int, int, int]] = []
    for number in range(160):
        log, ts = chance.choice(logs), BEGIN + chance.randrange(4 * DAY)
        tenant = chance.choice(("acme", "globex", "initech"))
        if chance.random() < 0.15:
            code = chance.choice(("policy_blocked", "rate_limited", "unauthorized"))
            log.refuse(number, ts, tenant=chance.choice((tenant, None)), code=code, policy=note(chance))
            continue
        admission = log.admit(
            number, ts, tenant=tenant, model=chance.choice(("gpt", "own", "")), policy=note(chance)
        )
        begun.append((log, number, admission, ts))
        while begun and chance.random() < 0.45:
            of, number, admission, ts = begun.pop(chance.randrange(len(begun)))
            used = {"prompt_tokens": chance.choice((1, 7, 1 << 40)), "completion_tokens": 2}
            end = {
                "usage": chance.choice((used, None)),
                "cost_nanodollars": chance.choice((None, 3, 1_000_000)),
                "outcome": chance.choice(("complete", "policy_blocked")),
                "policy": note(chance),
            }
            of.complete(number, admission, ts, **end)
    for of, number, admission, ts in begun[::2]:
        own = of.records[admission]["id"]
        if of is logs[0] and chance.random() < 0.5:
            later.add("aborted", ts + 5, id=own, incarnation=FIRST, admission=admission)
        else:
            of.complete(number, admission, ts, policy=note(chance))
    for log in (*logs, later):
        log.sign()


def times(chance: random.Random) -> Times:
    """All time, days, hours, and ranges with other bounds."""
    found: Times = [(None, None), (None, BEGIN + DAY), (BEGIN + 2 * DAY, None), (BEGIN, BEGIN + DAY)]
    for unit in (1, MINUTE, 5 * MINUTE, 60 * MINUTE, DAY):
        first = BEGIN + chance.randrange(4 * DAY // unit) * unit
        found += [(first, first + chance.randrange(1, 1 + 4 * DAY // unit) * unit), (first, None)]
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most_records", [7, 1000])
def test_over_any_time_the_sums_are_those_of_the_rows(tmp_path: Path, seed: int, most_records: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same each time
    index, ledger = tmp_path / "index", tmp_path / "ledger"
    written(ledger, chance)
    bring_up(index, ledger, most_records)
    asked = [
        Filter(tenant=tenant, since=since, until=until)
        for since, until in times(chance)
        for tenant in (None, "acme", "nobody")
    ]
    for one in asked:
        assert sums_told(index, one) == sums_of_rows(index, one), one
    bring_up(index, ledger, 50, rebuild=True)
    assert sums_told(index, asked[0]) == sums_of_rows(index, asked[0])


def test_what_days_that_were_removed_came_to_is_in_no_sum(tmp_path: Path) -> None:
    index, ledger = tmp_path / "index", tmp_path / "ledger"
    written(ledger, random.Random(9))  # noqa: S311 - the same each time
    bring_up(index, ledger)
    before = schema.day_of(BEGIN) + 2
    writer = IndexWriter.open(index, VKEY)
    assert writer.prune(before) == 2
    writer.close()
    found = sums_told(index, Filter())
    assert found == sums_of_rows(index, Filter())
    assert {day for *_, day in found} == {before, before + 1}
    with IndexSnapshot(index) as questions:
        numbered = questions._catalogue.execute("SELECT min(day) FROM numbered").fetchone()
    assert numbered == (before,)


def test_rows_are_read_of_no_more_than_five_minutes_at_each_edge() -> None:
    month = (BEGIN + 7 * MINUTE + 1, BEGIN + 30 * DAY + 11 * 60 * MINUTE + 3)
    parts = list(split_spans(*month))
    edges = [(first, behind) for span, first, behind in parts if not span]
    assert len(parts) < 2 * (12 + 24)
    assert edges == [(month[0], BEGIN + 10 * MINUTE), (BEGIN + 30 * DAY + 660 * MINUTE, month[1])]
    assert all(behind - first < FIVE_MINUTES_MICROSECONDS for first, behind in edges)
    begins = [first * span * FIVE_MINUTES_MICROSECONDS if span else first for span, first, _ in parts]
    ends = [behind * span * FIVE_MINUTES_MICROSECONDS if span else behind for span, _, behind in parts]
    assert (begins[0], ends[-1], begins[1:]) == (*month, ends[:-1])
    assert list(split_spans(5, 5)) == []
    assert list(split_spans(0, 4 * DAY)) == [(SPANS[0], 0, 4)]


def test_a_tenants_admission_is_looked_for_only_where_its_number_can_be(tmp_path: Path) -> None:
    index, ledger = tmp_path / "index", tmp_path / "ledger"
    log, other = Log(ledger), Log(ledger, SECOND, shard=1)
    for number in range(30):
        log.exchange(number, NOON + number * DAY // 10)
        other.exchange(100 + number, NOON + number * DAY // 10 + 5)
    log.sign()
    other.sign()
    bring_up(index, ledger, 100)
    with IndexSnapshot(index) as questions:
        for number in range(1, 31):
            for near in (NOON - DAY, NOON + (number - 1) * DAY // 10, NOON + 40 * DAY):
                row = questions.find_admission("acme", log.origin, number, near)
                assert row is not None
                assert (row.facts["tenant_seq"], row.position[0]) == (number, NOON + (number - 1) * DAY // 10)
    with IndexSnapshot(index) as questions:
        for tenant, origin, number in (("acme", log.origin, 31), ("nobody", log.origin, 1), ("acme", "x", 1)):
            assert questions.find_admission(tenant, origin, number, NOON) is None
        assert questions._open == {}, "no day's file was opened for a number that no day contains"
