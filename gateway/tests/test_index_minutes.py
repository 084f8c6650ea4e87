"""A query skips exactly the minutes that contain no match."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from index_ledger import NOON, Log, bring_up, rows

from proofgate.index import minutes, schema
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot

MINUTE = 60_000_000
#: Each pair of filters that minute summaries support, and a pair with a separately indexed column.
ASKED: list[dict[str, Any]] = [
    {"model": "rare"},
    {"provider": "anthropic"},
    {"key": "89abcdef"},
    {"key_name": "ci"},
    {"tenant": "globex", "key_name": "ci", "model": "rare"},
    {"outcome": "aborted"},
    {"outcome": "open"},
    {"rule": "pii"},
    {"min_cost": 500},
    {"model": "rare", "min_cost": 500},
    {"provider": "anthropic", "rule": "pii"},
    {"key": "89abcdef", "outcome": "upstream_error"},
    {"tenant": "globex", "model": "rare"},
    {"tenant": "acme", "min_cost": 500},
    {"tenant": "acme", "outcome": "upstream_error"},
    {"tenant": "globex", "provider": "anthropic", "rule": "pii"},
    {"tenant": "globex", "key": "89abcdef", "model": "rare", "min_cost": 500},
    {"verdict": "redacted", "provider": "anthropic"},
]


def holds(row: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether a row matches the filters."""
    known = {"provider": row["providers"], "rule": row["rules"]}
    return all(
        (row["cost_nanodollars"] or -1) >= wanted
        if name == "min_cost"
        else wanted in known.get(name, [row.get(name)])
        for name, wanted in asked.items()
    )


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_asked_the_answer_is_that_of_looking_at_every_row(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same each time
    log = Log(tmp_path / "ledger")
    begun: list[tuple[int, int, int]] = []
    for number in range(90):
        ts = NOON + chance.randrange(90) * MINUTE + chance.choice((0, 1, MINUTE - 1))
        note = {"rules": ["pii"], "redacted": chance.random() < 0.5, "would_block": False}
        admission = log.admit(
            number,
            ts,
            tenant=chance.choice(("acme", "globex")),
            model=chance.choice(("gpt", "gpt", "gpt", "rare")),
            key=chance.choice(("01234567", "89abcdef")),
            **chance.choice(({}, {}, {"key_name": "ci"})),
            **({"policy": note} if chance.random() < 0.2 else {}),
        )
        begun.append((number, admission, ts))
        # An end or a retry that comes later is in another batch than its admission.
        for _ in range(chance.randrange(3)):
            number, admission, ts = begun.pop(chance.randrange(len(begun)))
            own = log.records[admission]["id"]
            if chance.random() < 0.3:
                log.add("attempt", ts, id=own, admission=admission, attempt=2, provider="anthropic")
            end = {"outcome": chance.choice(("complete", "upstream_error")), "id": own}
            log.complete(number, admission, ts, cost_nanodollars=chance.randrange(1000), **end)
            if not begun:
                break
    log.sign()
    index = tmp_path / "index"
    bring_up(index, tmp_path / "ledger", 5)
    every = rows(index)
    assert len(every) == 90
    for asked in ASKED:
        wanted = [row for row in every if holds(row, asked)]
        for newest in (False, True):
            found: list[dict[str, Any]] = []
            after = None
            with IndexSnapshot(index) as questions:
                while True:
                    page = questions.page(Filter(**asked, newest=newest), 4, after)
                    found += [row.facts for row in page.rows]
                    after = page.next_cursor
                    if after is None:
                        break
            assert found == (wanted[::-1] if newest else wanted), asked


def test_what_is_rare_is_looked_for_in_its_minutes_alone(tmp_path: Path) -> None:
    log = Log(tmp_path / "ledger")
    for number in range(120):
        dear = number in (7, 8, 100)
        log.exchange(
            number,
            NOON + number * MINUTE,
            model="rare" if dear else "gpt",
            end={"cost_nanodollars": 5_000_000 if dear else 1},
        )
    log.sign()
    index = tmp_path / "index"
    bring_up(index, tmp_path / "ledger", 50)
    begin, end = schema.day_bounds(schema.day_of(NOON))
    day = schema.connect(schema.day_path(index, schema.day_of(NOON)))
    two, one = (NOON + 7 * MINUTE, NOON + 9 * MINUTE), (NOON + 100 * MINUTE, NOON + 101 * MINUTE)
    assert minutes.spans(day, Filter(), begin, end) == [(begin, end)]
    for asked in ({"model": "rare"}, {"min_cost": 1_000_000}, {"model": "rare", "provider": "openai"}):
        assert minutes.spans(day, Filter(**asked), begin, end) == [two, one]
    assert minutes.spans(day, Filter(model="rare"), NOON + 8 * MINUTE + 5, NOON + 100 * MINUTE) == [
        (NOON + 8 * MINUTE + 5, NOON + 9 * MINUTE)
    ]
    assert minutes.spans(day, Filter(model="rare", provider="anthropic"), begin, end) == []
    day.close()


def test_what_is_rare_of_a_tenant_is_looked_for_in_hours_in_which_that_tenant_has_it(tmp_path: Path) -> None:
    log = Log(tmp_path / "ledger")
    for number in range(240):
        dear = number % 2 == 0 or number == 61
        log.exchange(
            number,
            NOON + number * MINUTE,
            tenant="globex" if number % 2 == 0 else "acme",
            model="rare" if dear else "gpt",
            end={"cost_nanodollars": 5_000_000 if dear else 1},
        )
    # The last exchange's end is in another batch than its admission.
    ts = NOON + 239 * MINUTE
    admission = log.admit(240, ts, tenant="acme")
    for number in range(241, 300):
        log.exchange(number, NOON + 240 * MINUTE, tenant="globex", end={"cost_nanodollars": 1})
    log.complete(240, admission, ts, cost_nanodollars=7_000_000)
    log.sign()
    index = tmp_path / "index"
    bring_up(index, tmp_path / "ledger", 50)
    begin, end = schema.day_bounds(schema.day_of(NOON))
    day = schema.connect(schema.day_path(index, schema.day_of(NOON)))

    def minutes_of(**asked: Any) -> list[int]:
        found: list[int] = []
        for first, behind in minutes.spans(day, Filter(**asked), begin, end):
            found += range((first - NOON) // MINUTE, (behind - NOON) // MINUTE)
        return found

    second_hour = [*range(60, 120, 2), 61]
    assert minutes_of(tenant="acme", model="rare") == sorted(second_hour)
    assert minutes_of(tenant="acme", min_cost=1_000_000) == [*sorted(second_hour), *range(180, 239, 2), 239]
    assert minutes_of(tenant="globex", min_cost=6_000_000) == []
    assert minutes_of(tenant="nobody", model="rare") == []
    assert minutes_of(tenant="acme", model="rare", outcome="complete") == sorted(second_hour)
    assert minutes_of(tenant="acme", key="01234567") == minutes_of(key="01234567") != []
    day.close()
