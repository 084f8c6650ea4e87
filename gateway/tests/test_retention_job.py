"""The command `retention`: the effect of a plan on the state, and conditions that prevent a removal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from retention_double import LOG, STAYS, RetentionState
from signing import RETENTION_KEY, VKEY, Key

from proofgate import evidence
from proofgate.cli import main
from proofgate.keeping import arguments, plans, retention_job

pytestmark = pytest.mark.usefixtures("fake_retention_state")

SIGNING_KEY = RETENTION_KEY.signing
DAY = 86_400_000_000
CASE: dict[str, Any] = {"name": "case", "tenant": "acme", "since": "2026-01-01", "reason": "litigation"}

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def author(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the author of signed statements."""
    monkeypatch.setenv(arguments.AUTHOR_VARIABLE, "officer")


class Place:
    """A ledger, a retention key, and the path of a state that does not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "ledger" / "0" / "X"
        self.log.mkdir(parents=True)
        (folder / "key").write_text(f"{SIGNING_KEY}\n")

    def keep(self, *more: str, **plan: Any) -> tuple[int, dict[str, Any]]:
        (self.folder / "plan").write_text(json.dumps(plan))
        where = ("--ledger", "ledger", "--state", "state", "--signing-key", "key", "--plan", "plan")
        named = [part if part.startswith("--") else str(self.folder / part) for part in where]
        out = self.folder / "report"
        code = main(["ledger", "retention", *named, "--ledger-key", VKEY, "--report", str(out), *more])
        report: dict[str, Any] = json.loads(out.read_text())
        return code, report

    def holds(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / "state" / "holds").read_text())
        return found


def pruned() -> tuple[Any, ...]:
    """The arguments of the last removal."""
    return RetentionState.pruned


@pytest.fixture
def place(tmp_path: Path) -> Place:
    RetentionState.pruned = RetentionState.erased = ()
    return Place(tmp_path)


def test_the_first_run_begins_and_a_state_that_is_lost_later_stops_everything(place: Place) -> None:
    retention = {"maximumDays": 180}
    assert place.keep(begin=True, retention=retention)[0] == 0
    assert RetentionState.pruned[2:] == (
        180,
        {},
        ("officer", "the retention of 180 days (no anchor)", None),
        [],
        True,
    )
    (place.folder / "state" / "holds").unlink()
    RetentionState.pruned = ()
    code, report = place.keep(known=0, retention=retention)
    assert (code, report["result"], "known" in report) == (1, "keeping_state_missing", False)
    (place.folder / "state").rmdir()
    assert place.keep(known=0, retention=retention)[1]["result"] == "keeping_state_missing"
    assert not (place.folder / "state").exists(), "no state is created"
    assert RetentionState.pruned == ()


@pytest.mark.parametrize("trace", ["tombstone", "erasures", "../../key-destructions/00.note"])
def test_where_something_was_removed_or_erased_already_nothing_begins(place: Place, trace: str) -> None:
    (place.log / trace).parent.resolve().mkdir(exist_ok=True)
    (place.log / trace).write_text("")
    code, report = place.keep(begin=True, retention={"maximumDays": 1})
    assert (code, report["result"]) == (1, "keeping_state_missing")
    assert Path(trace).name in report["message"]
    assert RetentionState.pruned == ()
    assert not (place.folder / "state").exists()


def test_a_state_that_was_set_back_stops_everything(place: Place) -> None:
    assert place.keep(begin=True, holds=[CASE])[1]["known"] == 1
    code, report = place.keep(known=2, holds=[CASE], retention={"maximumDays": 1})
    assert (code, report["result"]) == (1, "keeping_state_set_back")
    assert RetentionState.pruned == ()


def test_a_plan_for_another_key_changes_nothing(place: Place) -> None:
    next_key = Key(RETENTION_KEY.name, bytes([6]) * 32)
    own, successor = RETENTION_KEY.verifying, next_key.verifying
    retention = {"maximumDays": 1, "tenants": [{"name": "acme", "maximumDays": 1}]}
    assert place.keep(retentionKey=own, begin=True, holds=[CASE])[0] == 0
    (place.folder / "key").write_text(next_key.signing)
    before = place.holds()
    fresh = {"name": "fresh", "all": True, "reason": "another case"}
    for named in (own, ""):
        code, report = place.keep(retentionKey=named, known=1, holds=[fresh], retention=retention)
        assert (code, report["result"]) == (1, "retention_key_differs")
        assert (report["retentionKeyName"], "known" in report) == ("proofgate.dev/ns/keeping", False)
        assert successor in report["message"]
        assert (place.holds(), RetentionState.pruned, RetentionState.erased) == (before, (), ())
    assert place.keep(retentionKey=successor, known=1, retention=retention)[0] == 0
    assert pruned() != ()


def test_a_plan_for_nobody_begins_no_state(place: Place) -> None:
    assert place.keep(retentionKey="", begin=True)[1]["result"] == "retention_key_differs"
    assert not (place.folder / "state").exists()


def test_a_hold_is_brought_in_once_and_goes_only_when_the_plan_releases_it(place: Place) -> None:
    assert place.keep(begin=True, holds=[CASE])[0] == 0
    assert place.keep(known=1, holds=[CASE])[1]["holds"] == 1
    [held] = place.holds()
    assert (held["name"], held["scope"]) == (
        "case",
        {"tenant": "acme", "since": arguments.parse_timestamp("2026-01-01")},
    )
    code, report = place.keep(known=1)
    assert (code, report["holds"], report["outside"], report["outsideCount"]) == (0, 1, ["case"], 1)
    assert place.keep(known=1, holds=[CASE | {"released": "settled"}])[1]["holds"] == 0
    assert place.holds()[0]["released"]["reason"] == "settled"
    # A hold that is no longer marked as released applies again.
    assert place.keep(known=1, holds=[CASE])[1]["known"] == 2


def test_a_hold_by_hand_stays_and_is_told(place: Place) -> None:
    place.keep(begin=True)
    state = str(place.folder / "state")
    assert main(["ledger", "hold", "add", "--state", state, "--all", "--reason", "by hand"]) == 0
    assert place.keep(known=0)[1]["outside"] == ["#1"]


@pytest.mark.parametrize(
    "other", [{"tenant": "globex"}, {"until": "2026-02-01"}, {"released": "r", "id": "x"}]
)
def test_a_hold_that_would_be_another_one_holds_on_and_stops_everything(
    place: Place, other: dict[str, str]
) -> None:
    place.keep(begin=True, holds=[CASE])
    fresh = {"name": "fresh", "all": True, "reason": "another case"}
    retention = {"maximumDays": 1, "tenants": [{"name": "acme", "maximumDays": 1}]}
    code, report = place.keep(known=1, holds=[CASE | other, fresh], retention=retention)
    assert (code, report["result"], report["changed"]) == (1, "hold_changed", ["case"])
    assert RetentionState.pruned == RetentionState.erased == ()
    # The other hold of the plan is added nevertheless.
    assert [hold.get("released") for hold in place.holds()] == [None, None]


def test_tenants_are_erased_up_to_midnight_and_minimums_hold_for_all_of_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arguments, "now", lambda: 1000 * DAY + 5)
    tenants = [{"name": "acme", "maximumDays": 90}, {"name": "globex", "minimumDays": 730}]
    retention = {"minimumDays": 30, "maximumDays": 180, "tenants": tenants}
    code, report = place.keep(begin=True, retention=retention)
    assert RetentionState.pruned[2:4] == (180, {"globex": 730})
    assert RetentionState.erased[3:] == (
        ("acme", 910 * DAY),
        (30, {"acme": 30, "globex": 730}),
        ("officer", "the retention of its tenant (no anchor)", None),
        True,
    )
    assert (report["removed"], report["removedNow"], report["erased"], report["erasedNow"]) == (3, 2, 6, 3)
    # Logs that stay because of a hold are no failure.
    assert (code, report["result"], report["staying"]) == (0, "ok", {"held": 2})


def test_what_stays_although_its_time_is_over_is_told_by_the_exit_code(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = retention_job.RetentionReport()
    logs: list[dict[str, Any]] = [
        STAYS | {"reasons": [{"code": "damaged", "text": ""}, {"code": "held", "text": ""}]},
        STAYS | {"reasons": [{"code": "not_ended", "text": ""}]},
        STAYS | {"reasons": [{"code": "uncovered", "text": ""}]},
        STAYS | {"reasons": [{"code": "held_unknown", "text": ""}]},
        LOG,
    ]
    assert retention_job._count_staying(report, logs, retention_job._OVERDUE_REMOVAL_CODES) == {
        "damaged": 1,
        "held_unknown": 1,
    }
    assert retention_job._count_staying(report, logs, retention_job._OVERDUE_ERASURE_CODES) == {
        "damaged": 1,
        "held_unknown": 1,
        "not_ended": 1,
        "uncovered": 1,
    }
    assert report.staying == {"damaged": 2, "held": 2, "held_unknown": 2, "not_ended": 2, "uncovered": 2}
    monkeypatch.setattr(RetentionState, "prune", lambda *_: json.dumps(logs))
    code, told = place.keep(begin=True, retention={"maximumDays": 1})
    assert (code, told["result"], told["removedNow"]) == (10, "staying", 1)
    assert "damaged (1)" in told["message"]


def test_a_clock_that_is_far_ahead_of_the_ledger_removes_nothing_and_holds_all_the_same(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This ULID contains 2016-07-30T23:54:10.259Z, as in the specification.
    place.log.with_name("01ARZ3NDEKTSV4RRFFQ69G5FAV").mkdir()
    place.log.with_name("zzzzzzzzzzzzzzzzzzzzzzzzzz").mkdir()
    began, retention = arguments.parse_timestamp("2016-07-30T23:54:10.259Z"), {"maximumDays": 1}
    assert retention_job._start_time("01ARZ3NDEKTSV4RRFFQ69G5FAV") == began
    monkeypatch.setattr(arguments, "now", lambda: began + 9 * DAY)
    code, report = place.keep(begin=True, quietDays=8, retention=retention, holds=[CASE])
    assert (code, report["result"], report["holds"]) == (1, "clock_doubtful", 1)
    assert pruned() == ()
    monkeypatch.setattr(arguments, "now", lambda: began + 9 * DAY - 1)
    assert place.keep(known=1, quietDays=8, retention=retention)[0] == 0
    assert pruned() != ()


def test_a_dry_run_changes_nothing(place: Place, capsys: Capture) -> None:
    code, report = place.keep("--dry-run", begin=True, holds=[CASE], retention={"maximumDays": 1})
    assert code == 0
    assert "would create it" in report["message"]
    assert RetentionState.pruned == ()
    assert not (place.folder / "state").exists()
    place.keep(begin=True)
    assert place.keep("--dry-run", "--json", known=0, holds=[CASE], retention={"maximumDays": 1})[0] == 0
    assert place.holds() == []
    assert pruned()[-1] is False
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :])["done"] is False


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({}, "a plan needs exactly one of begin and known"),
        ({"begin": True, "known": 1}, "a plan needs exactly one of begin and known"),
        ({"begin": True, "more": 1}, "more"),
        ({"known": -1}, "known"),
        (
            {"begin": True, "holds": [{"name": "a", "reason": "r"}]},
            "a hold needs either all, or at least one of",
        ),
        ({"begin": True, "holds": [CASE | {"all": True}]}, "a hold needs either all, or at least one of"),
        ({"begin": True, "holds": [CASE, CASE]}, "a hold is named twice"),
        ({"begin": True, "holds": [CASE | {"until": "2025-01-01"}]}, "since is later than until"),
        ({"begin": True, "holds": [CASE | {"since": "yesterday"}]}, "expected a day or a time"),
        ({"begin": True, "retention": {"maximumDays": 1, "minimumDays": 2}}, "less than minimumDays"),
        (
            {"begin": True, "retention": {"minimumDays": 9, "tenants": [{"name": "a", "maximumDays": 8}]}},
            "maximumDays of a is less than its minimum",
        ),
        (
            {"begin": True, "retention": {"tenants": [{"name": "a"}, {"name": "a"}]}},
            "a tenant is named twice",
        ),
        ({"begin": True, "retention": {"maximumDays": "9"}}, "maximumDays"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(place: Place, plan: dict[str, Any], said: str) -> None:
    code, report = place.keep(**plan)
    assert (code, report["result"]) == (2, "usage")
    assert said in report["message"]
    assert not (place.folder / "state").exists()


def test_a_plan_is_a_file_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    with pytest.raises(arguments.UsageError, match="cannot be read"):
        plans.read(path)
    path.write_bytes(b"[" * ((1 << 20) + 1))
    with pytest.raises(arguments.UsageError, match="larger than"):
        plans.read(path)


def test_the_longest_report_fits_into_a_containers_last_words() -> None:
    names = tuple(f"{'n' * 250}{number}" for number in range(500))
    report = retention_job.RetentionReport(
        *("d" * 16, "k" * 999, "keeping_state_corrupt", "\u00e9" * 4000, 500, 10**9),
        outside=names,
        changed=names,
    )
    report.staying.update({f"some_reason_{number}": 10**9 for number in range(12)})
    text = json.dumps(report.summary(), ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) <= retention_job.MAX_REPORT_BYTES
    assert report.summary()["outsideCount"] == 500


def test_a_verifying_key_may_be_given_with_the_statements_behind_it() -> None:
    line = f"{VKEY}\n\nproofgate.dev/key-succession/v1\nold {VKEY}\n"
    assert evidence.read_verifying_key(line) == line
    with pytest.raises(evidence.EvidenceError, match="signing key"):
        evidence.read_verifying_key(f"{SIGNING_KEY}\n\n{line}")


def test_a_report_that_cannot_be_written_is_told(place: Place, capsys: Capture) -> None:
    place.keep(begin=True)
    (place.folder / "report").unlink()
    (place.folder / "report").mkdir()
    with pytest.raises(IsADirectoryError):
        place.keep(known=0)  # `keep` reads the report too, so it raises
    assert "report cannot be written" in capsys.readouterr().err


def test_a_run_states_holds_on_the_ledger_whatever_else_it_does(place: Place) -> None:
    RetentionState.stated = ()
    assert place.keep("--dry-run", begin=True, holds=[CASE])[0] == 0
    assert tuple(RetentionState.stated) == (), "nothing is signed"
    assert place.keep(begin=True, holds=[CASE | {"reference": "2026-17"}])[0] == 0
    assert tuple(RetentionState.stated) == (str(place.folder / "ledger"), VKEY)
    assert (place.holds()[0]["author"], place.holds()[0]["ticket"]) == ("officer", "2026-17")


def test_a_run_without_an_author_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(arguments.AUTHOR_VARIABLE)
    code, report = place.keep(begin=True, holds=[CASE])
    assert (code, report["result"]) == (2, "usage")
    assert not (place.folder / "state").exists()
    assert place.keep("--author", "jo", begin=True, holds=[CASE])[0] == 0
