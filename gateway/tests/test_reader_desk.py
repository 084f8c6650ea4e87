"""The reader's desk under misuse: readers do not block each other, failed sign-ins are recorded, keys expire,
and local commands write to the same access log."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, cast

import auditor_double
import payloads_double
import pytest
from conftest import HTTP, PATIENCE_SECONDS, serving
from index_ledger import NOON, Log, bring_up, own_id
from signing import VKEY
from test_index_readers import ACME, ALL, FILE, GLOBEX, READERS, ask, code_of, digest, recorded

from proofgate import _core
from proofgate.auditor.service import create_app
from proofgate.auditor.watch import LedgerWatcher
from proofgate.cli import main
from proofgate.index import access_log_quota, query_limiter
from proofgate.index.access_log import AccessLog, encode_entry
from proofgate.index.command_line_reads import append_entry, write_access_log_location
from proofgate.index.failed_sign_ins import MAX_PEERS, FailedSignIns
from proofgate.index.index_services import IndexServices
from proofgate.index.readers import Reader, ReadersFile
from proofgate.index.refused_queries import MAX_LINES
from proofgate.index.routes import ReaderPort
from proofgate.index.row_formatting import csv_line

pytestmark = pytest.mark.usefixtures("fake_payloads", "fake_auditor")

Capture = pytest.CaptureFixture[str]
#: Space for about thirty lines of each reader.
SMALL = 32 << 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = Log(tmp_path / "ledger")
    for number in range(1, 7):
        log.exchange(number, NOON + number, tenant="globex" if number % 3 == 0 else "acme")
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    (tmp_path / "readers").write_text(json.dumps(READERS))
    return tmp_path


@pytest.fixture
def desk(folder: Path) -> Iterator[ReaderPort]:
    with closing(AccessLog(folder, 7, most_bytes=SMALL)) as access_log:
        yield ReaderPort(folder / "index", folder / "ledger", ReadersFile(folder / "readers"), access_log)


@pytest.fixture
def url(desk: ReaderPort) -> Iterator[str]:
    double = auditor_double.Auditor("ledger", "state", "PRIVATE+KEY+x", VKEY, 1, 1, 1, True)
    with serving(
        create_app(LedgerWatcher(cast("_core.Auditor", double), 1 << 20), IndexServices(reader_port=desk))
    ) as url:
        yield url


def until_full(url: str, key: str) -> tuple[int, Any]:
    for _ in range(1000):
        answer = ask(url, key, session="s" * 500)
        if answer[0] != 200:
            return answer
    raise AssertionError("the record never got full")


def test_a_reader_that_fills_its_part_of_the_record_costs_nobody_else_an_answer(url: str) -> None:
    assert code_of(until_full(url, ACME)) == (503, "access_log_unavailable")
    assert ask(url, GLOBEX)[0] == ask(url, ALL)[0] == 200
    assert code_of(until_full(url, GLOBEX)) == (503, "access_log_unavailable")
    assert ask(url, ALL)[0] == 200
    assert "proofgate_auditor_reads_without_room_total 2" in HTTP.get(f"{url}/metrics").text
    findings = HTTP.get(f"{url}/findings").json()["findings"]
    assert [(of["code"], of["origin"]) for of in findings] == [
        ("access_log_full", "acme's"),
        ("access_log_full", "globex's"),
    ]


def test_people_of_one_name_have_a_part_of_the_access_log_each() -> None:
    people = [
        Reader("oidc:ada", tenant, None, subject) for tenant in (None, "acme") for subject in ("u-1", 'u"2')
    ]
    holders = [access_log_quota.owner_for_reader(person) for person in people]
    assert len(set(holders)) == len(people)
    # After a restart, the lines still show the owner.
    assert [
        access_log_quota.line_owner(encode_entry(ReaderPort._entry(person) | {"asked": {}}))
        for person in people
    ] == holders
    other = Reader("oidc:ada u-1", None)
    assert access_log_quota.owner_for_reader(other) not in holders
    assert access_log_quota.line_owner(
        encode_entry(ReaderPort._entry(other))
    ) == access_log_quota.owner_for_reader(other)


def test_readers_that_ask_much_at_once_keep_an_officer_from_no_answer(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, asked, answered = ReaderPort._page, threading.Semaphore(0), threading.Event()

    def slow(desk: ReaderPort, reader: Reader, *rest: Any) -> Any:
        if reader.tenant is not None:
            asked.release()
            assert answered.wait(PATIENCE_SECONDS)
        return page(desk, reader, *rest)

    monkeypatch.setattr(ReaderPort, "_page", slow)
    with ThreadPoolExecutor(8) as pool:
        acmes = [pool.submit(ask, url, ACME) for _ in range(4)]
        assert all(asked.acquire(timeout=PATIENCE_SECONDS) for _ in range(query_limiter.MAX_PER_READER))
        first = islice(as_completed(acmes, PATIENCE_SECONDS), 4 - query_limiter.MAX_PER_READER)
        assert [code_of(one.result()) for one in first] == [(503, "busy")] * 2
        globexs = pool.submit(ask, url, GLOBEX)
        assert asked.acquire(timeout=PATIENCE_SECONDS), "another tenant still has a slot"
        assert ask(url, ALL)[0] == 200
        answered.set()
        assert globexs.result(PATIENCE_SECONDS)[0] == 200
    assert sorted(one.result()[0] for one in acmes) == [200, 200, 503, 503]
    assert ask(url, ACME)[0] == 200


def test_whose_part_is_full_is_known_again_after_a_start(url: str, folder: Path, desk: ReaderPort) -> None:
    until_full(url, ACME)
    acme, officer = (
        access_log_quota.owner_for_reader(Reader(*who)) for who in (("acme's", "acme"), ("officer", None))
    )
    with closing(AccessLog(folder, 8, desk.access_log_head(), most_bytes=SMALL)) as again:
        line = {"time": "t", "reader": "acme's", "tenant": "acme", "asked": {"session": "s" * 500}}
        with pytest.raises(OSError, match="this reader has used"):
            again.add(line, acme, sharers=2)
        again.add({"time": "t", "reader": "officer", "tenant": None}, officer)


def test_a_line_is_known_to_be_its_readers_whatever_the_name_is() -> None:
    names = [("a", None), ('a","tenant":null,"x":"', "b"), ("é\\", 'n"'), ("", "x")]
    for name, tenant in names:
        line = json.dumps({"time": "t", "reader": name, "tenant": tenant, "asked": {}}, separators=(",", ":"))
        assert access_log_quota.line_owner(line.encode()) == access_log_quota.owner_for_reader(
            Reader(name, tenant)
        )


def test_refused_questions_are_recorded_short_and_beyond_some_only_counted(
    url: str, desk: ReaderPort
) -> None:
    for number in range(MAX_LINES + 30):
        assert ask(url, ACME, after=f"{number}" + "A" * 3000)[0] == 400
    entries = recorded(desk.access_log._directory)
    assert len(entries) == MAX_LINES
    assert max(len(json.dumps(entry)) for entry in entries) < 400
    assert ask(url, ACME)[0] == 200
    desk.flush(ending=True)
    last = recorded(desk.access_log._directory)[-1]
    assert (last["reader"], last["refused_more"], last["for_seconds"]) == ("acme's", {"bad_cursor": 30}, 60)


def test_a_failed_sign_in_is_recorded_with_the_address_and_a_flood_is_summed_up(
    url: str, desk: ReaderPort, folder: Path
) -> None:
    for number in range(50):
        assert ask(url, f"guess-{number}")[0] == 401
    assert [(of["sign_in"], of["peer"]) for of in recorded(folder)] == [("not_a_reader", "127.0.0.1")]
    desk.flush(ending=True)
    assert recorded(folder)[-1]["count"] == 49
    assert "guess-" not in (folder / FILE).read_text()
    text = HTTP.get(f"{url}/metrics").text
    assert 'proofgate_auditor_sign_ins_refused_total{code="not_a_reader"} 50' in text


def test_sign_ins_from_very_many_addresses_leave_few_lines() -> None:
    lines: list[dict[str, Any]] = []
    sign_ins = FailedSignIns(lines.append)
    for number in range(5000):
        sign_ins.record_failure(f"10.0.{number >> 8}.{number & 255}", "not_a_reader")
        sign_ins.record_failure(f"2001:db8::{number:x}", "not_a_reader")
    sign_ins.flush(ending=True)
    assert len(lines) <= 2 * MAX_PEERS + 1
    assert sum(line["count"] for line in lines) == 10_000
    assert "2001:db8::/64" in {line["peer"] for line in lines}


def test_a_sign_in_that_cannot_be_recorded_fails_all_the_same(
    url: str, desk: ReaderPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.access_log, "_most_bytes", 0)
    assert ask(url, "guess")[0] == 401


def test_a_key_is_good_on_its_last_day_and_is_told_afterwards(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"name": "acme's", "tenant": "acme", "notAfter": "2027-01-31"}
    (folder / "readers").write_text(json.dumps({digest(ACME): entry}))
    clock = 1_801_439_999_999_999_000  # the last microsecond of 31 January 2027
    monkeypatch.setattr("proofgate.index.routes.time.time_ns", lambda: clock)
    assert ask(url, ACME)[0] == 200
    clock += 1000
    assert code_of(ask(url, ACME)) == (401, "reader_expired")
    assert recorded(folder)[-1]["sign_in"] == "reader_expired"


def test_who_reads_an_index_by_hand_is_in_the_auditors_record(folder: Path, desk: ReaderPort) -> None:
    write_access_log_location(folder / "index", folder)
    index = ["--index", str(folder / "index")]
    before = desk.access_log_head()[1]
    assert main(["audit", "exchanges", *index, "--tenant", "acme"]) == 0
    out = str(folder / "out")
    assert (
        main(
            ["audit", "export", *index, "--ledger", str(folder / "ledger"), "--tenant", "acme", "--out", out]
        )
        == 0
    )
    listed, exported = recorded(folder)
    assert (listed["by_hand"], listed["rows"], listed["asked"]["tenant"]) == ("exchanges", 4, "acme")
    assert (exported["by_hand"], exported["asked"]["out"]) == ("export", out)
    assert listed["host"] == socket.gethostname()
    assert listed["user"]
    # The running auditor adds these lines to its tree, and continues.
    assert desk.access_log_head()[1] == before + 2


def test_reads_by_hand_fill_their_own_part_alone(url: str, folder: Path, desk: ReaderPort) -> None:
    entry = {"time": "t", "by_hand": "exchanges", "user": "u", "host": "h", "asked": {"session": "s" * 500}}

    def fill() -> None:
        for _ in range(1000):
            append_entry(folder, entry, 8, SMALL)

    with pytest.raises(OSError, match="commands have used"):
        fill()
    assert ask(url, ALL)[0] == ask(url, ACME)[0] == 200
    assert desk.access_log_head()[1] == len(recorded(folder))


def test_lines_by_hand_and_of_readers_are_one_log(url: str, folder: Path, desk: ReaderPort) -> None:
    write_access_log_location(folder / "index", folder)
    for _ in range(3):
        assert ask(url, ALL)[0] == 200
        assert main(["audit", "exchanges", "--index", str(folder / "index")]) == 0
    head = desk.access_log_head()
    assert [("by_hand" in of) for of in recorded(folder)] == [False, True] * 3
    with closing(AccessLog(folder, 9, head)) as again:
        assert (again.changed, again.head()) == (None, head)


def test_what_is_read_by_hand_and_cannot_be_recorded_is_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    AccessLog(folder, 7).close()
    write_access_log_location(folder / "index", folder)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["audit", "exchanges", "--index", str(folder / "index")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "access_log_unavailable" in told.err
    assert main(["audit", "exchanges", "--index", str(folder / "index"), "--unrecorded"]) == 0
    assert "not recorded" in capsys.readouterr().err


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The `payload show` command for a response with terminal control characters."""
    body = b"hi\x1b]0;owned\x07\x9b2J\r\n\xe2\x80\xaetext"
    stored = payloads_double.StoredExchange(response=body)
    monkeypatch.setattr(_core, "stored_payload", lambda *_: stored)
    where = ["--ledger", str(tmp_path), "--key", VKEY, "--shred-keys", str(tmp_path)]
    return ["ledger", "payload", "show", own_id(1), "--response", *where]


class Terminal(io.TextIOWrapper):
    """Standard output that reports to be a terminal or not."""

    def __init__(self, *, terminal: bool = True) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self._is_terminal = terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def shown(self) -> bytes:
        self.flush()
        return cast("io.BytesIO", self.buffer).getvalue()


def test_bytes_of_a_provider_reach_a_terminal_only_when_they_are_asked_for(
    shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    assert main(shown) == 0
    assert terminal.shown() == rb"hi\x1b]0;owned\x07\x9b2J\r" + b"\n" + rb"\u202etext"
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    assert main([*shown, "--raw"]) == 0
    assert b"\x1b]0;owned\x07" in terminal.shown()


def test_a_pipe_gets_every_byte(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", pipe := Terminal(terminal=False))
    assert main(shown) == 0
    assert pipe.shown() == b"hi\x1b]0;owned\x07\x9b2J\r\n\xe2\x80\xaetext"


def test_nothing_that_any_command_prints_steers_a_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(folder / "ledger", shard=3)
    log.exchange(70, NOON + 70, model="gpt-\x1b[2J\x9b\u202e")
    log.sign()
    bring_up(folder / "index", folder / "ledger", 100)
    for form in ([], ["--csv"], ["--json"]):
        monkeypatch.setattr(sys, "stdout", terminal := Terminal())
        assert main(["audit", "exchanges", "--index", str(folder / "index"), *form]) == 0
        assert re.search(rb"gpt-", terminal.shown())
        assert not set("\x1b\x9b\u202e") & set(terminal.shown().decode())


def test_who_shows_a_payload_is_recorded_where_the_record_is_named(shown: list[str], folder: Path) -> None:
    AccessLog(folder, 7).close()
    assert main([*shown, "--access-log", str(folder)]) == 0
    assert recorded(folder)[-1]["by_hand"] == "payload show"
    assert recorded(folder)[-1]["asked"] == {"id": own_id(1), "body": "response"}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "text",
    [
        "=1",
        " =1",
        "gpt;=1+2",
        "gpt;=cmd!A1;",
        "gpt; =1",
        'a;"=1',
        "a\t=1",
        "a|@x",
        "a\n=1",
        "a\r-1",
        "a;\uff1d1",
    ],
)
def test_no_cell_is_a_formula_whichever_separator_is_set(text: str, delimiter: str) -> None:
    line = csv_line(["2026", text, "next", None, 5])
    cells = [cell for row in csv.reader(io.StringIO(line, newline=None), delimiter=delimiter) for cell in row]
    assert not [
        cell for cell in cells if cell.lstrip(" \"'\t").startswith(tuple("=+-@\uff1d")) and cell[:1] != "'"
    ]
