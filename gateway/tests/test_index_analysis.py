"""The findings of response analysis in an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from index_ledger import DAY, NOON, Log, bring_up, own_id

from proofgate.index import analysis
from proofgate.index.filter import Filter
from proofgate.index.query import IndexSnapshot
from proofgate.index.schema import format_time

TEST = {"feature": "entropy", "values": 200, "distance_ppm": 9, "p_ppb": 1, "differs": True}


def window(log: Log, number: int, ts: int, findings: list[str] | None = None, **other: Any) -> int:
    told: dict[str, Any] = {
        "number": number,
        "answers": 200,
        "with_entropy": 3,
        "refusal_permille": 5,
        "cut_permille": 0,
    }
    told |= {"entropy_millibits": 900 + number, "length_millitokens": 31_000, "tests": [TEST] * (number > 1)}
    usual = {"exchange": own_id(number), "admission": 1, "tenant": "acme", "model": "gpt"}
    return log.add("analysis", ts, **(usual | {"findings": findings or [], "window": told} | other))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = Log(tmp_path / "ledger")
    log.exchange(1, NOON - DAY)
    window(log, 1, NOON - DAY)
    window(log, 2, NOON, ["entropy"])
    window(log, 1, NOON + 1, tenant="globex", model="other")
    told = {"repetition_permille": 800, "stretch_permille": 900}
    own = {"exchange": own_id(9), "admission": 1, "tenant": "acme", "model": "gpt"}
    log.add("analysis", NOON + 2, **own, findings=["loop", "repetitive"], answer=told)
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger")
    return tmp_path


def ask(folder: Path, **asked: Any) -> dict[str, Any]:
    with IndexSnapshot(folder / "index") as questions:
        return analysis.read_analysis(questions, Filter(**asked))


def test_windows_and_flagged_answers_come_in_order_with_the_numbers_of_their_records(folder: Path) -> None:
    found = ask(folder)
    assert [(of["tenant"], of["number"]) for of in found["windows"]] == [
        ("acme", 1),
        ("acme", 2),
        ("globex", 1),
    ]
    second = found["windows"][1]
    assert second["findings"] == ["entropy"]
    assert second["tests"] == [TEST]
    names = ("entropy_millibits", "length_millitokens", "refusal_permille", "cut_permille", "answers")
    assert [second[name] for name in names] == [902, 31_000, 5, 0, 200]
    assert second["repetition_permille"] is None
    assert found["windows"][0]["tests"] == []
    assert (second["time"], second["exchange"]) == (format_time(NOON), own_id(2))
    [answer] = found["answers"]
    assert (answer["findings"], answer["stretch_permille"]) == (["loop", "repetitive"], 900)
    assert answer["record"]["index"] == 6
    assert not found["more"]


def test_a_day_on_which_only_analysis_was_recorded_is_a_day_of_the_index(folder: Path) -> None:
    found = ask(folder, tenant="acme", since=NOON // DAY * DAY)
    assert [of["number"] for of in found["windows"]] == [2]
    assert len(found["answers"]) == 1
    assert ask(folder, model="other")["windows"][0]["tenant"] == "globex"
    assert ask(folder, tenant="nobody")["windows"] == []


def test_of_very_many_the_newest_are_told_and_that_there_are_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "MAX_RECORDS", 2)
    found = ask(folder)
    assert found["more"]
    assert [of["tenant"] for of in found["windows"]] == ["globex"]
    assert len(found["answers"]) == 1
