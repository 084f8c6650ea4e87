"""A retention job that waits for entries in the auditor's log, which it reads from the auditor's port."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anchored_place
import pytest
from anchored_place import ERASURE, KEY, TOMBSTONE, Auditor, erased, head, removed
from loopback import Handler, answer, answering
from retention_double import RetentionState
from signing import VKEY, Key
from test_retention_job import CASE, Place

from proofgate.cli import main
from proofgate.keeping import anchors, arguments

pytestmark = pytest.mark.usefixtures("fake_retention_state")

RETENTION = {"maximumDays": 180, "tenants": [{"name": "acme", "maximumDays": 90}]}
PATIENCE = "600"

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def auditor() -> Iterator[Auditor]:
    with anchored_place.auditor() as it:
        yield it


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes both a removal and an erasure wait, without pauses between polls."""
    monkeypatch.setenv(arguments.AUTHOR_VARIABLE, "officer")
    monkeypatch.setattr(anchors, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(RetentionState, "tombstone", TOMBSTONE)
    monkeypatch.setattr(RetentionState, "erasure", ERASURE)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    RetentionState.pruned = RetentionState.erased = ()
    RetentionState.anchored = None
    return Place(tmp_path)


def waits(auditor: Auditor, patience: str = PATIENCE) -> tuple[str, ...]:
    """The options of a run that waits for the auditor's log at most for `patience`."""
    return ("--auditor", auditor.url, "--auditor-key", KEY, "--auditor-patience", patience)


def signed() -> bool:
    """Whether the core had to remove or erase anything."""
    return RetentionState.pruned != () or RetentionState.erased != ()


def test_a_run_signs_and_destroys_once_the_auditor_has_told_it(place: Place, auditor: Auditor) -> None:
    auditor.tell(head(1))
    # The job polls repeatedly, and the entries appear after some polls.
    auditor.events = [
        auditor.stay,
        auditor.stay,
        lambda: auditor.tell(head(2), removed()),
        auditor.stay,
        lambda: auditor.tell(erased()),
    ]
    code, report = place.keep(*waits(auditor), begin=True, retention=RETENTION)
    assert (code, report["result"], report["anchor"]) == (0, "ok", "auditor")
    assert (report["removedNow"], report["erasedNow"]) == (2, 3)
    assert "not_anchored" not in report["staying"]
    assert RetentionState.anchored == {TOMBSTONE, ERASURE}
    assert RetentionState.pruned[4] == ("officer", "the retention of 180 days", None)


def test_what_an_auditor_does_not_tell_waits_for_the_next_run(place: Place, auditor: Auditor) -> None:
    auditor.tell(head(1), erased())
    code, report = place.keep(*waits(auditor, "0"), begin=True, retention=RETENTION)
    assert (code, report["result"], report["removedNow"]) == (10, "not_anchored", 0)
    assert report["staying"]["not_anchored"] == 1
    assert report["message"] == "signed statements about 1 log wait until the auditor's log contains them"
    assert report["erasedNow"] == 3, "the erasure's entry is in the auditor's log"
    auditor.tell(removed())
    code, report = place.keep(*waits(auditor, "0"), known=0, retention=RETENTION)
    assert (code, report["result"], report["removedNow"]) == (0, "ok", 2)


def test_of_an_auditor_that_is_away_nothing_is_signed_and_holds_hold(place: Place, auditor: Auditor) -> None:
    auditor.leave()
    plan = {"retention": RETENTION, "holds": [CASE]}
    code, report = place.keep(*waits(auditor, "0"), begin=True, **plan)
    assert (code, report["result"], report["anchor"]) == (1, "auditor_unreachable", "auditor")
    assert "answered with status 503 (not_cosigned)" in report["message"]
    assert (report["holds"], place.holds()[0]["name"], signed()) == (1, "case", False)
    auditor.tell(removed(), erased())
    auditor.come_back()
    code, report = place.keep(*waits(auditor, "0"), known=1, **plan)
    assert (code, report["result"], signed()) == (0, "ok", True)


def test_an_auditor_that_comes_back_during_a_run_is_waited_for(place: Place, auditor: Auditor) -> None:
    auditor.tell(head(1))
    auditor.leave()
    auditor.events = [
        *[auditor.stay, auditor.stay, auditor.come_back],
        # The auditor also fails between the two signatures and the entries for them.
        *[auditor.leave, auditor.stay, auditor.come_back],
        lambda: auditor.tell(removed(), erased()),
    ]
    code, report = place.keep(*waits(auditor), begin=True, retention=RETENTION)
    assert (code, report["result"], report["removedNow"]) == (0, "ok", 2)


def test_an_auditor_that_goes_during_a_run_leaves_what_is_signed_for_the_next(
    place: Place, auditor: Auditor
) -> None:
    auditor.tell(head(1))
    auditor.events = [auditor.stay, auditor.leave]
    code, report = place.keep(*waits(auditor, "0"), begin=True, retention=RETENTION)
    assert (code, report["result"]) == (10, "not_anchored")
    assert report["message"].startswith(
        "signed statements about 2 logs wait until the auditor's log contains them; "
    )
    assert "not_cosigned" in report["message"]
    auditor.come_back()
    auditor.tell(removed(), erased())
    assert place.keep(*waits(auditor, "0"), known=0, retention=RETENTION)[0] == 0


def _another(auditor: Auditor) -> None:
    auditor.origin = "audit.example.com/another"


def _another_root(auditor: Auditor) -> None:
    auditor.root = bytes(32)


def _no_entry(auditor: Auditor) -> None:
    auditor.entries[1] = b"[" * 4000


def _half_an_entry(auditor: Auditor) -> None:
    auditor.entries[1] = b'{"kind":"removed"}'


@pytest.mark.parametrize("spoil", [_another, _another_root, _no_entry, _half_an_entry])
def test_what_does_not_lead_to_what_the_auditor_signed_lets_nothing_go(
    place: Place, auditor: Auditor, spoil: Callable[[Auditor], None]
) -> None:
    auditor.tell(head(1), removed(), erased())
    spoil(auditor)
    code, report = place.keep(*waits(auditor, "0"), begin=True, retention=RETENTION)
    assert (code, report["result"], signed()) == (1, "auditor_log_refused", False)
    assert not (place.folder / "state" / anchors.CACHE_FILE).exists()


def test_what_was_read_once_is_not_asked_for_again(place: Place, auditor: Auditor) -> None:
    auditor.tell(*map(head, range(600)), removed(), erased())
    assert place.keep(*waits(auditor), begin=True, retention=RETENTION)[0] == 0
    assert auditor.bundles == ["/tile/entries/000", "/tile/entries/001", "/tile/entries/002.p/90"]
    assert place.keep(*waits(auditor), known=0, retention=RETENTION)[0] == 0
    assert auditor.bundles == []
    auditor.tell(*map(head, range(200)))
    assert place.keep(*waits(auditor), known=0, retention=RETENTION)[0] == 0
    assert auditor.bundles == ["/tile/entries/002", "/tile/entries/003.p/34"]
    assert RetentionState.anchored == {TOMBSTONE, ERASURE}
    # An unreadable cache only means that the whole log is read again.
    for text in ("", "[]", '{"v":1,"origin":"a","size":3,"peaks":[],"statements":[]}', '{"v":2}', "[" * 9000):
        (place.folder / "state" / anchors.CACHE_FILE).write_text(text)
        assert place.keep(*waits(auditor), known=0, retention=RETENTION)[0] == 0
        assert len(auditor.bundles) == 4


def test_a_log_that_is_shorter_or_another_one_than_it_was_lets_nothing_go(
    place: Place, auditor: Auditor
) -> None:
    auditor.tell(head(1), removed(), erased())
    assert place.keep(*waits(auditor), begin=True, retention=RETENTION)[0] == 0
    whole, RetentionState.pruned, RetentionState.erased = list(auditor.entries), (), ()
    auditor.entries = whole[:2]
    code, report = place.keep(*waits(auditor, "0"), known=0, retention=RETENTION)
    assert (code, report["result"], signed()) == (1, "auditor_log_refused", False)
    assert "shrank from 3 entries to 2" in report["message"]
    assert anchors.CACHE_FILE in report["message"]
    auditor.entries = [*whole[:2], b'{"kind":"head"}', b'{"kind":"head"}']
    assert (
        place.keep(*waits(auditor, "0"), known=0, retention=RETENTION)[1]["result"] == "auditor_log_refused"
    )
    # A key with another name belongs to another log, which is read from its start.
    auditor.origin = "audit.example.com/new"
    auditor.entries = whole
    new = Key(auditor.origin).verifying
    options = [new if option == KEY else option for option in waits(auditor, "0")]
    assert place.keep(*options, known=0, retention=RETENTION)[0] == 0


def test_a_dry_run_reads_the_log_and_remembers_nothing(place: Place, auditor: Auditor) -> None:
    assert place.keep(begin=True)[1]["anchor"] == "none"
    auditor.tell(removed(), erased())
    code, report = place.keep(*waits(auditor), "--dry-run", known=0, retention=RETENTION)
    assert (code, report["anchor"], RetentionState.pruned[-1]) == (0, "auditor", False)
    assert not (place.folder / "state" / anchors.CACHE_FILE).exists()


def test_without_an_auditor_what_is_signed_says_so(place: Place) -> None:
    code, report = place.keep(begin=True, retention=RETENTION)
    assert (code, report["result"], report["anchor"]) == (0, "ok", "none")
    assert RetentionState.anchored is None
    assert RetentionState.pruned[4][1] == "the retention of 180 days (no anchor)"
    assert RetentionState.erased[5][1] == "the retention of its tenant (no anchor)"


def by_hand(place: Place, *more: str) -> list[str]:
    folder = place.folder
    named = ["--ledger", str(folder / "ledger"), "--state", str(folder / "state")]
    key = ["--signing-key", str(folder / "key"), "--ledger-key", VKEY]
    return ["prune", *named, *key, "--older-than", "180d", "--yes", *more]


def test_by_hand_the_port_does_as_well_as_the_state(place: Place, auditor: Auditor, capsys: Capture) -> None:
    assert place.keep(begin=True)[0] == 0
    auditor.tell(head(1), removed())
    assert main(by_hand(place, "--auditor", auditor.url, "--auditor-key", KEY)) == 0
    assert RetentionState.anchored == {TOMBSTONE}
    for refused, why in (
        (["--auditor", auditor.url], "give --auditor-key together"),
        (["--auditor-key", KEY], "give --auditor-key together"),
        (["--auditor", "ftp://a", "--auditor-key", KEY], "is not an http(s) URL"),
        (["--auditor", "http://me:pass@a", "--auditor-key", KEY], "must not contain a password"),
        (["--auditor", "http://a:99999", "--auditor-key", KEY], "ort"),
    ):
        RetentionState.pruned = ()
        assert main(by_hand(place, *refused)) == 2
        told = capsys.readouterr().err
        assert why in told
        assert "pass@" not in told
        assert RetentionState.pruned == ()
    auditor.leave()
    assert main(by_hand(place, "--auditor", auditor.url, "--auditor-key", KEY)) == 2
    assert "not_cosigned): nothing was done" in capsys.readouterr().err


def _no_http(handler: Handler) -> None:
    handler.wfile.write(b"hello\r\n\r\n")
    handler.close_connection = True


HOSTILE: dict[str, Callable[[Handler], None]] = {
    "too large": answer(b"x" * (1 << 17)),
    "cut off": answer(b"half", length=100),
    "no text": answer(b"\xff\xfe"),
    "another server": answer(b"<html>", 404),
    "a redirect": answer(b"", 302),
    "an error with escapes": answer(json.dumps({"error": {"code": "\x1b[31m"}}).encode(), 500),
    "a deep error": answer(b"[" * 60_000, 500),
    "no HTTP": _no_http,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_answers_at_the_auditors_port_lets_nothing_go(place: Place, name: str) -> None:
    with answering(HOSTILE[name]) as url:
        options: tuple[Any, ...] = ("--auditor", url.partition("/jwks")[0], "--auditor-key", KEY)
        code, report = place.keep(*options, "--auditor-patience", "0", begin=True, retention=RETENTION)
    assert (code, signed()) == (1, False)
    assert report["result"] in ("auditor_unreachable", "auditor_log_refused")
    assert report["message"].isprintable()
