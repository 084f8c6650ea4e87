"""The retention job's commands: their arguments, output and refusals."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import retention_double
from retention_double import RetentionState
from signing import RETENTION_KEY, VKEY, Key

from proofgate import _core
from proofgate.cli import main
from proofgate.keeping import arguments

pytestmark = pytest.mark.usefixtures("fake_retention_state")

SIGNING_KEY = RETENTION_KEY.signing
DAY = 86_400_000_000

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def author(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the author of signed statements."""
    monkeypatch.setenv(arguments.AUTHOR_VARIABLE, "officer")


@pytest.fixture
def state(tmp_path: Path, capsys: Capture) -> str:
    """The state of a started retention job, with a ledger and the retention key in the same folder."""
    (tmp_path / "ledger").mkdir()
    (tmp_path / "key").write_text(f"{SIGNING_KEY}\n")
    keys = ("--ledger-key", VKEY, "--signing-key", str(tmp_path / "key"))
    assert main(["ledger", "hold", "begin", "--state", str(tmp_path / "state"), *keys]) == 0
    assert "PRIVATE" not in capsys.readouterr().out
    return str(tmp_path / "state")


@pytest.fixture
def prune(tmp_path: Path, state: str) -> list[str]:
    return [
        *("ledger", "prune", "--ledger", str(tmp_path / "ledger"), "--ledger-key", VKEY, "--state", state),
        *("--signing-key", str(tmp_path / "key"), "--older-than", "180d"),
    ]


def test_a_hold_is_added_listed_and_released_and_stays_in_the_list(state: str, capsys: Capture) -> None:
    add = ["ledger", "hold", "add", "--state", state, "--reason", "a case"]
    assert main([*add, "--tenant", "acme", "--since", "2026-01-31", "--reference", "2026-17"]) == 0
    assert main([*add, "--all"]) == 0
    capsys.readouterr()
    assert main(["ledger", "hold", "release", "2", "--state", state, "--reason", "closed"]) == 0
    assert "released" in capsys.readouterr().out
    assert main(["ledger", "hold", "list", "--state", state]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "hold 1: tenant acme, since 2026-01-31T00:00:00Z: a case (2026-17), by officer; since "
    )
    assert lines[1].startswith("hold 2: everything: a case")
    assert lines[2] == "active holds: 1 of 2"
    assert main(["ledger", "hold", "list", "--state", state, "--json"]) == 0
    assert [hold["id"] for hold in json.loads(capsys.readouterr().out)["holds"]] == [1, 2]
    assert main(["ledger", "hold", "release", "9", "--state", state, "--reason", "closed"]) == 1
    assert "[no_such_hold]" in capsys.readouterr().err


def test_a_hold_and_its_release_are_stated_at_once_where_the_ledger_is_given(
    tmp_path: Path, state: str, capsys: Capture
) -> None:
    where = ["--ledger", str(tmp_path / "ledger"), "--ledger-key", VKEY]
    add = ["ledger", "hold", "add", "--state", state, "--all", "--reason", "a case", "--ticket", "2026-17"]
    RetentionState.stated = ()
    assert main([*add, *where]) == 2
    assert "give --ledger, --ledger-key and --signing-key together" in capsys.readouterr().err
    assert main([*add, *where, "--signing-key", str(tmp_path / "key"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ticket"] == "2026-17"
    assert tuple(RetentionState.stated) == (str(tmp_path / "ledger"), VKEY)
    RetentionState.stated = ()
    release = [
        "ledger",
        "hold",
        "release",
        "1",
        "--state",
        state,
        "--reason",
        "closed",
        "--ticket",
        "2026-18",
    ]
    assert main([*release, *where, "--signing-key", str(tmp_path / "key"), "--json"]) == 0
    released = json.loads(capsys.readouterr().out)["released"]
    assert (released["author"], released["ticket"]) == ("officer", "2026-18")
    assert tuple(RetentionState.stated) == (str(tmp_path / "ledger"), VKEY)


def test_what_is_signed_names_who_answers_for_it(
    monkeypatch: pytest.MonkeyPatch, state: str, prune: list[str], erase: list[str], capsys: Capture
) -> None:
    monkeypatch.delenv(arguments.AUTHOR_VARIABLE)
    all_of = [*erase, "--tenant", "acme", "--override-minimum"]
    hold = ["ledger", "hold", "add", "--state", state, "--all", "--reason", "a case"]
    RetentionState.pruned = RetentionState.erased = ()
    for signs in (hold, [*prune, "--yes"], [*all_of, "--yes"]):
        assert main(signs) == 2
        assert (
            "name the person or role responsible with --author or $PROOFGATE_AUTHOR"
            in capsys.readouterr().err
        )
    assert (RetentionState.pruned, RetentionState.erased) == ((), ())
    assert main([*hold, "--author", "jo"]) == 0
    assert "a case, by jo" in capsys.readouterr().out
    # A plan has no signature, so it needs no author.
    assert main(prune) == 0


def test_a_hold_says_what_it_is_about(state: str, capsys: Capture) -> None:
    add = ["ledger", "hold", "add", "--state", state, "--reason", "a case"]
    assert main(add) == 2
    assert main([*add, "--all", "--tenant", "acme"]) == 2
    assert "give --all, or conditions" in capsys.readouterr().err


def test_nothing_is_done_without_a_state(tmp_path: Path, prune: list[str], capsys: Capture) -> None:
    nowhere = str(tmp_path / "nowhere")
    assert main(["ledger", "hold", "list", "--state", nowhere]) == 2
    assert not Path(nowhere).exists(), "no state is created"
    Path(nowhere).mkdir()
    assert main([nowhere if argument.endswith("/state") else argument for argument in prune]) == 1
    assert "[keeping_state_missing]" in capsys.readouterr().err


def test_a_state_is_begun_once(tmp_path: Path, state: str, capsys: Capture) -> None:
    keys = ("--ledger-key", VKEY, "--signing-key", str(tmp_path / "key"))
    assert main(["ledger", "hold", "begin", "--state", state, *keys]) == 1
    assert "[keeping_state_exists]" in capsys.readouterr().err
    assert main(["ledger", "hold", "begin", "--state", state, *keys[:2], "--signing-key", str(tmp_path)]) == 2


def test_a_state_within_the_ledger_is_refused(tmp_path: Path, prune: list[str], capsys: Capture) -> None:
    inside = tmp_path / "ledger" / "state"
    inside.mkdir()
    assert main([str(inside) if argument.endswith("/state") else argument for argument in prune]) == 2
    assert "--state is inside the ledger" in capsys.readouterr().err


def test_without_yes_it_is_told_what_would_go_and_why_the_rest_stays(
    prune: list[str], capsys: Capture
) -> None:
    assert main(prune) == 0
    assert RetentionState.pruned[-1] is False
    assert RetentionState.pruned[2:5] == (180, {}, ("officer", "the retention of 180 days", None))
    assert capsys.readouterr().out.splitlines() == [
        "will be removed: a/0/X",
        "  81 records, 40 exchanges, newest 2023-11-14T22:13:20Z, 9000 bytes",
        "kept: a/0/Y",
        "  held: hold 1 touches records of it",
        "removal will be completed: a/0/X",
        "  files that an earlier removal left: 1",
        "already removed: a/0/X",
        "nothing was changed: --yes would remove 2 logs and keep 1",
    ]


def test_with_yes_it_is_done(tmp_path: Path, prune: list[str], capsys: Capture) -> None:
    (tmp_path / "kept").write_text("a note")
    more = ("--tenant-minimum", "ac=me=730d", "--reason", "by order", "--against", str(tmp_path / "kept"))
    assert main([*prune, *more, "--author", "jo", "--ticket", "T-1", "--yes", "--json"]) == 0
    why = ("jo", "by order", "T-1")
    assert RetentionState.pruned[3:] == ({"ac=me": 730}, why, [(str(tmp_path / "kept"), "a note")], True)
    report = json.loads(capsys.readouterr().out)
    assert (report["done"], report["remove"], report["finish"], report["stay"]) == (True, 1, 1, 1)
    assert report["logs"][1] == retention_double.STAYS
    assert main([*prune, "--tenant-minimum", "a=1d", "--tenant-minimum", "a=2d"]) == 2
    assert main([*prune, "--against", str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize("code", ["damaged", "tombstone_refused"])
def test_a_log_of_which_something_cannot_be_read_or_believed_stays_and_the_exit_code_says_so(
    prune: list[str], monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    reasons = [{"code": code, "text": "read X/checkpoint: Input/output error: run fsck"}]
    monkeypatch.setattr(retention_double, "STAYS", retention_double.STAYS | {"reasons": reasons})
    assert main(prune) == 10
    assert main([*prune, "--yes", "--json"]) == 10


@pytest.fixture
def erase(tmp_path: Path, state: str) -> list[str]:
    return [
        *("ledger", "erase", "--ledger", str(tmp_path / "ledger"), "--ledger-key", VKEY, "--state", state),
        *("--signing-key", str(tmp_path / "key"), "--reason", "asked for on paper"),
    ]


def test_an_exchange_is_erased_once_somebody_says_so(erase: list[str], capsys: Capture) -> None:
    one = [*erase, "--id", "req_1", "--minimum", "180d", "--tenant-minimum", "acme=730d"]
    assert main(one) == 0
    assert RetentionState.erased[2:] == (
        "req_1",
        None,
        (180, {"acme": 730}),
        ("officer", "asked for on paper", None),
        False,
    )
    assert capsys.readouterr().out.splitlines() == [
        "will be erased: the salts of 1 exchange in a/0/X",
        "nothing was changed: --yes would destroy the salts of 1 exchange and keep the salts of 0 logs",
    ]
    assert main([*one, "--yes"]) == 0
    assert RetentionState.erased[-1] is True
    assert "destroyed the salts of 1 exchange" in capsys.readouterr().out


def test_a_tenant_of_which_anything_stays_is_not_done(erase: list[str], capsys: Capture) -> None:
    of = [*erase, "--tenant", "acme", "--override-minimum"]
    assert main([*of, "--until", "1970-01-02", "--yes", "--json"]) == 1
    assert RetentionState.erased[3:5] == (("acme", 2 * DAY - 1), None)
    report = json.loads(capsys.readouterr().out)
    assert (report["exchanges"], report["stay"]) == (3, 1)
    assert main(of) == 1
    assert RetentionState.erased[3] == ("acme", None), "the core determines the end"
    assert "  held: hold 1 touches records of it" in capsys.readouterr().out.splitlines()


def test_an_erasure_says_of_what_and_against_which_minimum(erase: list[str], capsys: Capture) -> None:
    assert main([*erase, "--id", "req_1", "--until", "1970-01-02", "--minimum", "0d"]) == 2
    assert main([*erase, "--id", "req_1", "--override-minimum", "--tenant-minimum", "acme=1d"]) == 2
    for wrong in (["--id", "req_1"], ["--minimum", "0d"], ["--id", "a", "--tenant", "b", "--minimum", "0d"]):
        with pytest.raises(SystemExit):
            main([*erase, *wrong])
    capsys.readouterr()


def test_days_and_times_are_read_as_they_are_meant() -> None:
    assert arguments.days("180d") == 180
    assert arguments.parse_timestamp("1970-01-02") == DAY
    assert arguments.parse_timestamp("1970-01-02T01:00:00.000001+01:00") == DAY + 1
    assert arguments.parse_inclusive_end("1970-01-02") == 2 * DAY - 1, "a date includes the whole day"
    assert arguments.parse_inclusive_end("1970-W01-5") == 2 * DAY - 1
    assert arguments.parse_exclusive_end("1970-01-02") == 2 * DAY
    assert (
        arguments.parse_inclusive_end("1970-01-02T00:00:00Z")
        == arguments.parse_exclusive_end("1970-01-02T00:00")
        == DAY
    )
    assert arguments.format_time(10**30) == f"{10**30} µs"
    for text in ("180", "d", "-1d", "1.5d", "9999999d"):
        with pytest.raises(argparse.ArgumentTypeError):
            arguments.days(text)
    for text in ("acme", "=1d", "acme=1"):
        with pytest.raises(argparse.ArgumentTypeError):
            arguments.tenant_days(text)
    for text in ("yesterday", "1960-01-01"):
        with pytest.raises(argparse.ArgumentTypeError):
            arguments.parse_timestamp(text)


AUDITOR = Key("audit.example.com/demo")


def auditors_state(folder: Path, *entries: dict[str, Any]) -> tuple[str, ...]:
    """The options for an auditor's state with these entries, in the double's notes."""
    tree, bundle = _core.Tree(), b""
    for entry in entries:
        line = json.dumps(entry).encode()
        tree.push(line)
        bundle += len(line).to_bytes(2, "big") + line
    tiles = folder / "tile" / "entries" / "000.p"
    tiles.mkdir(parents=True)
    (tiles / str(tree.size)).write_bytes(bundle)
    (folder / "checkpoint").write_text(AUDITOR.checkpoint(AUDITOR.name, tree.size, tree.root))
    return ("--auditor-state", str(folder), "--auditor-key", AUDITOR.verifying)


def test_what_is_in_the_auditors_log_is_read_before_anything_goes(
    tmp_path: Path, prune: list[str], capsys: Capture
) -> None:
    digest = "0a" * 32
    auditor = auditors_state(
        tmp_path / "audit",
        {"v": 1, "kind": "head", "origin": "a/0/X", "size": 1, "checkpoint": "note"},
        {"v": 1, "kind": "statement", "statement": {"kind": "erasure", "sha256": digest, "signed": 1}},
        {"v": 1, "kind": "removed", "tombstone": "a note\n"},
    )
    assert main(prune) == 0
    assert RetentionState.anchored is None
    assert main([*prune, *auditor]) == 0
    assert RetentionState.anchored == {digest, hashlib.sha256(b"a note\n").hexdigest()}
    RetentionState.pruned = ()
    assert main([*prune, *auditor[:2]]) == 2
    assert "give --auditor-key together" in capsys.readouterr().err
    bundle = tmp_path / "audit" / "tile" / "entries" / "000.p" / "3"
    bundle.write_bytes(bundle.read_bytes().replace(b"0a0a", b"0b0b", 1))
    assert main([*prune, *auditor, "--yes"]) == 2
    assert "do not match its signed root: nothing was done" in capsys.readouterr().err
    (tmp_path / "audit" / "checkpoint").unlink()
    assert main([*prune, *auditor, "--yes"]) == 2
    assert RetentionState.pruned == ()
