"""An overview of a time range: sums in equal steps match the rows, also per rule."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from index_ledger import DAY, NOON, Log, bring_up, rows
from signing import VKEY
from test_index_sums import BEGIN, written

from proofgate.index import overview as module
from proofgate.index.denials import effective_verdict
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.known_names import known_names
from proofgate.index.overview import GROUPINGS, overview
from proofgate.index.query import IndexSnapshot
from proofgate.index.schema import DENIED, REFUSED
from proofgate.index.writer import IndexWriter

HOUR = 3600 * 1_000_000
STEPS = ("exchanges", "denied", "redacted", "cost_nanodollars")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("overview")
    written(folder / "ledger", random.Random(3))  # noqa: S311 - the same each time
    bring_up(folder / "index", folder / "ledger", 9)
    return folder / "index"


def told(index: Path, by: str = "tenant", **asked: Any) -> dict[str, Any]:
    with IndexSnapshot(index) as questions:
        return overview(questions, Filter(**asked), by, NOON)


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * 1_000_000


def figures(row: dict[str, Any]) -> dict[str, int]:
    denied = row["verdict"] in ("denied", "blocked")
    counts = (1, int(denied), int(row["verdict"] == "redacted"), row["cost_nanodollars"] or 0)
    return dict(zip(STEPS, counts, strict=True))


@pytest.mark.parametrize(
    ("since", "until", "step"),
    [
        (BEGIN + 5 * HOUR, BEGIN + 9 * HOUR + 7, 300),
        (BEGIN + 7, BEGIN + 2 * DAY, 3600),
        (BEGIN - 10 * DAY, BEGIN + 5 * DAY, 86_400),
    ],
)
@pytest.mark.parametrize("tenant", [None, "acme", "nobody"])
@pytest.mark.parametrize("by", GROUPINGS)
def test_each_step_has_what_its_rows_come_to(
    index: Path, since: int, until: int, step: int, tenant: str | None, by: str
) -> None:
    found = told(index, by, since=since, until=until, tenant=tenant)
    begin, end = micros(found["since"]), micros(found["until"])
    assert (found["step_seconds"], begin % (step * 1_000_000), end % (step * 1_000_000)) == (step, 0, 0)
    assert begin <= since
    assert end >= until
    of = rows(index, Filter(since=begin, until=end, tenant=tenant))
    expected: Counter[tuple[Any, str, int]] = Counter()
    for row in of:
        at = (micros(row["time"]) - begin) // (step * 1_000_000)
        for name, figure in figures(row).items():
            expected[row[by], name, at] += figure
    for series in found["series"]:
        for name in STEPS if by != "verdict" else STEPS[:1]:
            assert len(series[name]) == (end - begin) // (step * 1_000_000)
            for at, figure in enumerate(series[name]):
                assert figure == expected[series["name"], name, at], (series["name"], name, at)
    assert sum(sum(series["exchanges"]) for series in found["series"]) == len(of)
    assert found["totals"]["exchanges"] == len(of)
    assert found["totals"]["denied"] == sum(row["verdict"] == "denied" for row in of)


def test_a_rule_has_the_exchanges_in_which_it_matched_also_where_an_end_came_late(index: Path) -> None:
    since, until = BEGIN, BEGIN + 4 * DAY
    expected: dict[str, list[int]] = {}
    for row in rows(index, Filter(since=since, until=until)):
        for rule in row["rules"]:
            of = expected.setdefault(rule, [0, 0, 0])
            _, denied, redacted, _ = figures(row).values()
            of[:] = [of[0] + 1, of[1] + denied, of[2] + redacted]
    found = told(index, since=since, until=until)["rules"]
    assert {of.pop("rule"): list(of.values()) for of in found} == expected
    assert len(expected) == 3


@pytest.mark.parametrize("code", ["policy_blocked", "policy_budget", "policy_panic", "policy_unavailable"])
def test_a_policy_that_fails_denies_as_well(code: str) -> None:
    assert effective_verdict(REFUSED, code) == DENIED
    assert effective_verdict(REFUSED, "rate_limited") == REFUSED


def test_what_a_rule_denies_is_no_refusal_of_another_kind(tmp_path: Path) -> None:
    log = Log(tmp_path / "ledger")
    for number, code in enumerate(
        ("policy_blocked", "policy_unavailable", "approval_required", "guarded_tool_refused", "rate_limited")
    ):
        log.refuse(number, NOON + number, code=code)
    log.refuse(9, NOON + 9, code="unauthorized", tenant=None)
    log.exchange(10, NOON + 10, end={"outcome": "policy_blocked"})
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger")
    totals = told(tmp_path / "index", since=NOON, until=NOON + HOUR)["totals"]
    names = ("exchanges", "denied", "refused", "blocked", "unpriced")
    assert [totals[name] for name in names] == [7, 4, 2, 1, 0]


def test_small_series_are_one(tmp_path: Path) -> None:
    log = Log(tmp_path / "ledger")
    for number in range(20):
        log.exchange(
            number, NOON + number, tenant=f"tenant-{number:02}", end={"cost_nanodollars": 100 - number}
        )
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger")
    found = told(tmp_path / "index", since=NOON, until=NOON + 1)
    names = [f"tenant-{number:02}" for number in range(20)]
    assert [one["name"] for one in found["series"]] == [*names[: module.MAX_SERIES], None]
    assert (found["series"][-1]["others"], found["series"][-1]["exchanges"]) == (True, [13])
    assert [one["tenant"] for one in found["tenants"]] == names[: module.MAX_NAMES]


def test_a_time_that_cannot_be_told_is_refused_and_days_that_were_removed_are_left_out(
    tmp_path: Path,
) -> None:
    written(tmp_path / "ledger", random.Random(9))  # noqa: S311 - the same each time
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    for asked, by in (({}, "key"), ({"since": NOON + 1}, "tenant"), ({"since": 0}, "tenant")):
        with pytest.raises(IndexUnusableError) as refused:
            told(tmp_path / "index", by, **asked)
        assert refused.value.code == "bad_filter"
    writer = IndexWriter.open(tmp_path / "index", VKEY)
    writer.prune((BEGIN + DAY) // DAY)
    writer.close()
    found = told(tmp_path / "index", since=BEGIN - 30 * DAY, until=BEGIN + 4 * DAY)
    assert micros(found["since"]) == BEGIN + DAY
    assert found["totals"]["exchanges"] == len(rows(tmp_path / "index"))


def test_names_to_choose_from_are_those_of_the_index_and_of_one_tenant_its_own(tmp_path: Path) -> None:
    log = Log(tmp_path / "ledger")
    said = {"session": "s-1", "agent": "reviewer"}
    log.exchange(
        1,
        NOON,
        key="0000aaaa",
        key_name="ci",
        attribution=said,
        policy={"rules": ["pii"], "redacted": False, "would_block": False},
    )
    log.exchange(
        2,
        NOON + DAY,
        tenant="globex",
        model="own",
        key="0000bbbb",
        provider="azure",
        attribution={"session": "s-2"},
    )
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger")
    with IndexSnapshot(tmp_path / "index") as questions:
        assert known_names(questions) == {
            "tenants": ["acme", "globex"],
            "models": ["gpt", "own"],
            "rules": ["pii"],
            "keys": ["0000aaaa", "0000bbbb"],
            "key_names": ["ci"],
            "providers": ["azure", "openai"],
            "outcomes": ["complete"],
            "agents": ["reviewer"],
            "sessions": ["s-2", "s-1"],
        }
        own = known_names(questions, "acme")
    assert (own["tenants"], own["models"], own["keys"]) == (["acme"], ["gpt"], ["0000aaaa"])
    assert (own["providers"], own["sessions"]) == (["openai"], ["s-1"])
    assert own["key_names"] == ["ci"]


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("by", GROUPINGS)
def test_a_page_reads_sums_alone_and_searches_each_of_their_times(
    index: Path, monkeypatch: pytest.MonkeyPatch, by: str, tenant: str | None
) -> None:
    selects: list[tuple[str, list[Any]]] = []
    read = IndexSnapshot.query_catalogue

    def noted(questions: IndexSnapshot, select: str, values: list[Any]) -> list[tuple[Any, ...]]:
        selects.append((select, values))
        return read(questions, select, values)

    monkeypatch.setattr(IndexSnapshot, "query_catalogue", noted)
    monkeypatch.setattr(IndexSnapshot, "query_day", None)
    told(index, by, since=BEGIN, until=BEGIN + 4 * DAY, tenant=tenant)
    monkeypatch.undo()
    sums = [
        (select, values) for select, values in selects if " FROM name" not in select.partition("WHERE")[0]
    ]
    with IndexSnapshot(index) as questions:
        for select, values in sums:
            plan = [row[3] for row in questions.query_catalogue(f"EXPLAIN QUERY PLAN {select}", values)]
            of_each = "tenant > -1" in select
            assert of_each == (tenant is None and select.startswith(("SELECT tenant,", "SELECT at, tenant,")))
            bounds = "(span=? AND at>? AND at<?)" if of_each else "(span=? AND at=? AND tenant=?)"
            assert any(bounds in step for step in plan), plan
    assert len(sums) > 3


def test_what_all_tenants_come_to_is_read_no_matter_how_many_they_are(tmp_path: Path) -> None:
    for name, tenants in (("few", 2), ("many", 40)):
        log = Log(tmp_path / name / "ledger")
        for number in range(80):
            log.exchange(number, NOON + number, tenant=f"tenant-{number % tenants}")
        log.sign()
        bring_up(tmp_path / name / "index", tmp_path / name / "ledger")
    steps = {}
    for name in ("few", "many"):
        with IndexSnapshot(tmp_path / name / "index") as questions:
            of = module._StepSums(questions, 1, NOON // 300_000_000, NOON // 300_000_000 + 12, None)
            counted = Counter[str]()
            questions._catalogue.set_progress_handler(partial(counted.update, "s"), 1)
            models, verdicts = of.totals_by("model"), of.verdicts()
            of.series("model", models)
            of.rules()
            steps[name] = counted["s"]
        assert (models["gpt"].exchanges, sum(verdicts[0]["exchanges"])) == (80, 80)
    assert steps["few"] == steps["many"]
