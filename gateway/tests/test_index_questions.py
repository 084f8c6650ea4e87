"""Queries of an index: filters, stable pages, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from index_ledger import DAY, NOON, SECOND, Log, bring_up, own_id, rows

from proofgate.cli import main
from proofgate.index import schema
from proofgate.index.conditions import conditions_of
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot

Capture = pytest.CaptureFixture[str]
HEADINGS = ["TIME", "TENANT", "MODEL", "PROVIDER", "VERDICT", "OUTCOME", "STATUS", "TOKENS", "USD", "ID"]
ATTRIBUTION = {
    "session": "5f1d",
    "end_user": "1d" * 16,
    "end_user_name": "alice@example.com",
    "agent": "reviewer@team",
    "parent_agent": "lead@team",
    "trace_id": "7a" * 16,
}
HIT = {"rules": ["pii"], "redacted": False, "would_block": False}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log with nine exchanges on two days."""
    log = Log(tmp_path / "ledger")
    log.exchange(1, NOON)
    log.exchange(2, NOON + 10, tenant="globex", key="89abcdef", key_name="ci")
    log.exchange(3, NOON + 20, model="claude", provider="anthropic", end={"cost_nanodollars": 2_000_000_000})
    log.exchange(4, NOON + 30, policy=HIT | {"redacted": True})
    log.exchange(5, NOON + 40, policy=HIT, end={"outcome": "policy_blocked", "status": 403})
    log.refuse(6, NOON + 50, key_name="ci")
    log.refuse(7, NOON + 60, tenant=None, code="unauthorized", status=401)
    log.exchange(8, NOON + DAY, policy=HIT | {"would_block": True})
    person = {"attribution": ATTRIBUTION, "client_address": "2001:db8::7"}
    log.admit(9, NOON + DAY + 10, key_name="batch", **person)
    log.sign()
    return log


@pytest.fixture
def index(log: Log, tmp_path: Path) -> Path:
    assert log.records
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    return tmp_path / "index"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"tenant": "acme"}, [1, 3, 4, 5, 6, 8, 9]),
        ({"tenant": "nobody"}, []),
        ({"since": "2026-11-26"}, [8, 9]),
        ({"since": "2026-11-25T12:00:00.000010Z", "until": "2026-11-25T12:00:00.000030Z"}, [2, 3]),
        ({"until": "2026-11-25T13:00:00+01:00"}, []),
        ({"until": "2026-11-25"}, [1, 2, 3, 4, 5, 6, 7]),
        ({"since": "2026-11-25", "until": "2026-11-25", "tenant": "acme"}, [1, 3, 4, 5, 6]),
        ({"model": "claude"}, [3]),
        ({"provider": "anthropic"}, [3]),
        ({"provider": "pii"}, []),
        ({"verdict": "allowed"}, [1, 2, 3, 9]),
        ({"verdict": "flagged"}, []),
        ({"verdict": "redacted"}, [4]),
        ({"verdict": "would_block"}, [8]),
        ({"verdict": "blocked"}, [5]),
        ({"verdict": "denied", "tenant": "acme"}, [6]),
        ({"verdict": "refused", "tenant": "acme"}, []),
        ({"rule": "pii"}, [4, 5, 8]),
        ({"rule": "openai"}, []),
        ({"outcome": "open"}, [9]),
        ({"outcome": "unauthorized"}, [7]),
        ({"key": "89abcdef"}, [2]),
        ({"key_name": "ci"}, [2, 6]),
        ({"key_name": "ci", "tenant": "acme"}, [6]),
        ({"key_name": "gpt"}, []),
        ({"id": own_id(4, NOON + 30)}, [4]),
        ({"id": own_id(4, NOON + 3_000_000)}, []),
        ({"id": "something else"}, []),
        ({"min_cost": "1.5"}, [3]),
        ({"min_cost": "1e-999990", "model": "claude"}, [3]),
        ({"min_cost": "0", "model": "gpt", "since": "2026-11-26"}, [8]),
        ({"session": "5f1d"}, [9]),
        ({"session": "5f1d", "tenant": "acme"}, [9]),
        ({"session": "5f1d", "tenant": "globex"}, []),
        ({"session": "gpt"}, []),
        ({"end_user": "1d" * 16}, [9]),
        ({"end_user": "7a" * 16}, []),
        ({"end_user_name": "alice@example.com"}, [9]),
        ({"end_user_name": "alice@example.com", "tenant": "globex"}, []),
        ({"end_user_name": "lead@team"}, []),
        ({"client_address": "2001:db8::7"}, [9]),
        ({"client_address": "2001:0DB8:0::7", "tenant": "acme"}, [9]),
        ({"client_address": "192.0.2.7"}, []),
        ({"agent": "reviewer@team"}, [9]),
        ({"agent": "lead@team"}, []),
        ({"trace_id": "7a" * 16}, [9]),
        ({"trace_id": "1d" * 16, "tenant": "acme"}, []),
    ],
)
def test_what_is_asked_for_is_found_and_nothing_else(
    index: Path, asked: dict[str, str], found: list[int]
) -> None:
    for newest in (False, True):
        numbers = [int(row["id"][-12:], 16) for row in rows(index, Filter.parse(asked, newest=newest))]
        assert numbers == (found[::-1] if newest else found)


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 4, 100])
def test_pages_hold_what_was_there_at_the_first_one(index: Path, log: Log, newest: bool, limit: int) -> None:
    asked = Filter(newest=newest)
    before = [row["id"] for row in rows(index, asked)]
    found: list[str] = []
    after: str | None = None
    number = 100
    while True:
        with IndexSnapshot(index) as questions:
            page = questions.page(asked, limit, after)
        found += [row.facts["id"] for row in page.rows]
        after = page.next_cursor
        if after is None:
            break
        # More exchanges arrive between pages: at all positions in time, and in another shard.
        for ts in (NOON + 15, NOON + 45, NOON + DAY + 5, NOON + DAY + 99):
            number += 1
            log.exchange(number, ts)
        log.sign()
        if number < 110:
            other = Log(log.directory.parents[1], SECOND, shard=number)
            other.exchange(number + 1000, NOON + 25)
            other.sign()
        bring_up(index, log.directory.parents[1], 100)
    assert found == before
    assert limit == 100 or len(rows(index)) > len(before)


def test_a_cursor_of_another_question_or_of_none_is_refused(index: Path, tmp_path: Path) -> None:
    with IndexSnapshot(index) as questions:
        cursor = questions.page(Filter(tenant="acme"), 1).next_cursor
        assert cursor is not None
        for asked in (Filter(), Filter(tenant="globex"), Filter(tenant="acme", newest=True)):
            with pytest.raises(IndexUnusableError) as caught:
                questions.page(asked, 1, cursor)
            assert caught.value.code == "cursor_differs"
        for text in ("x", "%%%", "e30", "bnVsbA", "é", cursor[:-3], "W" * 5000, "eyJ2IjoxfQ"):
            with pytest.raises(IndexUnusableError) as caught:
                questions.page(Filter(tenant="acme"), 1, text)
            assert caught.value.code == "bad_cursor", text
    bring_up(index, tmp_path / "ledger", 100, rebuild=True)
    with IndexSnapshot(index) as questions, pytest.raises(IndexUnusableError) as caught:
        questions.page(Filter(tenant="acme"), 1, cursor)
    assert caught.value.code == "cursor_expired"


@pytest.mark.parametrize(
    "asked",
    [
        {"verdict": "maybe"},
        {"since": "yesterday"},
        {"since": "1960-01-01"},
        {"since": "2026-11-26", "until": "2026-11-25"},
        {"min_cost": "-1"},
        {"min_cost": "NaN"},
        {"min_cost": "1e40"},
        {"min_cost": "1e999990"},
        {"min_cost": "1e9999999"},
        {"min_cost": "1e999999999999999999999"},
        {"min_cost": "-1e999990"},
        {"min_cost": "Infinity"},
        {"min_cost": "9" * 400},
        {"tenant": ""},
        {"end_user": "alice@example.com"},
        {"client_address": "2001:db8::/32"},
        {"client_address": "localhost"},
        {"trace_id": "7A" * 16},
        {"model": "m" * 513},
    ],
)
def test_a_filter_that_is_none_is_refused(asked: dict[str, str]) -> None:
    with pytest.raises(IndexUnusableError) as caught:
        Filter.parse(asked)
    assert caught.value.code == "bad_filter"


def test_a_name_that_a_record_has_cut_is_found_by_all_of_it() -> None:
    name = f"{'a' * 127}é and more"
    assert Filter.parse({"end_user_name": name}).end_user_name == "a" * 127


def test_an_address_of_version_4_within_6_is_looked_for_as_records_have_it() -> None:
    assert Filter.parse({"client_address": "::FFFF:c000:207"}).client_address == "::ffff:192.0.2.7"


@pytest.mark.parametrize(
    ("asked", "found_by"),
    [
        ({"end_user_name": "alice@example.com"}, "by_end_user_name (end_user_name=? AND ts>? AND ts<?)"),
        ({"client_address": "2001:db8::7"}, "by_client_address (client_address=? AND ts>? AND ts<?)"),
        (
            {"client_address": "2001:db8::7", "tenant": "acme"},
            "by_client_address (client_address=? AND ts>? AND ts<?)",
        ),
        # The search covers only the minutes with this value, which are few if the value is rare.
        ({"key_name": "batch"}, "PRIMARY KEY (ts>? AND ts<?)"),
    ],
)
def test_a_person_and_an_address_are_searched_for_in_an_index_of_those_that_are_recorded(
    index: Path, asked: dict[str, str], found_by: str
) -> None:
    day = schema.connect(schema.day_path(index, schema.day_of(NOON + DAY)))
    conditions = conditions_of(day, Filter.parse(asked))
    assert conditions is not None
    where = " AND ".join(["version <= ?", *(condition for condition, _ in conditions), "ts >= ?", "ts < ?"])
    values = [0, *(value for _, value in conditions), 0, 0]
    select = f"SELECT ts FROM exchange WHERE {where} ORDER BY ts, log, seq LIMIT 9"  # noqa: S608 - ours
    plan = [row[3] for row in day.execute(f"EXPLAIN QUERY PLAN {select}", values)]
    kept = [row[0] for row in day.execute("SELECT sql FROM sqlite_master WHERE name LIKE 'by_%'")]
    day.close()
    assert any(found_by in step for step in plan), plan
    assert not [step for step in plan if "TEMP B-TREE" in step], plan
    for name in asked.keys() & {"end_user_name", "client_address"}:
        # Exchanges without the value are not in this index.
        assert any(f"WHERE {name} IS NOT NULL" in index for index in kept)


def test_the_command_shows_a_table_and_a_cursor(index: Path, capsys: Capture) -> None:
    arguments = ["audit", "exchanges", "--index", str(index), "--tenant", "acme", "--limit", "2"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == HEADINGS
    assert lines[2].split()[:5] == ["2026-11-25T12:00:00.000020Z", "acme", "claude", "anthropic", "allowed"]
    assert "2.000000" in lines[2]
    cursor = lines[-1].removeprefix("next: --after ")
    assert main([*arguments, "--after", cursor, "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in page["exchanges"]] == ["redacted", "blocked"]
    assert page["next"]
    assert main([*arguments, "--after", cursor, "--csv"]) == 0
    table, told = capsys.readouterr()
    assert table.splitlines()[1].split(",")[1] == own_id(4, NOON + 30)
    assert told.startswith("next: --after ")
    assert main(["audit", "exchanges", "--index", str(index), "--after", cursor]) == 2
    assert "[cursor_differs]" in capsys.readouterr().err
    assert main(["audit", "exchanges", "--index", str(index), "--tenant", "nobody"]) == 0
    assert capsys.readouterr().out == "no exchanges\n"


def test_what_records_hold_steers_no_terminal_and_no_spreadsheet(
    log: Log, tmp_path: Path, capsys: Capture
) -> None:
    log.exchange(50, NOON, model='=HYPERLINK("x")\x1b[2J\n')
    log.sign()
    bring_up(tmp_path / "other", tmp_path / "ledger")
    assert main(["audit", "exchanges", "--index", str(tmp_path / "other")]) == 0
    assert '=HYPERLINK("x")?[2J?' in capsys.readouterr().out
    assert main(["audit", "exchanges", "--index", str(tmp_path / "other"), "--csv"]) == 0
    assert ",\"'=HYPERLINK(" in capsys.readouterr().out
