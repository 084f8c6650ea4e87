"""The index over the auditor's port: who may read what, and that it is recorded before it is answered."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import auditor_double
import httpx
import pytest
from conftest import eventually, serving
from index_ledger import NOON, VKEY, Log, bring_up, own_id, rows

from proofgate import _core
from proofgate.auditor.service import create_app
from proofgate.auditor.watch import Watch
from proofgate.cli import main
from proofgate.index.access_log import AccessLog
from proofgate.index.follow import AuditedIndex
from proofgate.index.readers import Readers, ReadersError
from proofgate.index.routes import Desk

#: The access log of a test: begun at 7 microseconds.
FILE = "access-7-00000000000000000000.jsonl"
ALL, ACME, GLOBEX = "reader-key-of-all", "reader-key-of-acme", "reader-key-of-globex"
Capture = pytest.CaptureFixture[str]


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


READERS: dict[str, Any] = {
    digest(ALL): {"name": "officer", "all": True},
    digest(ACME): {"name": "acme's", "tenant": "acme"},
    digest(GLOBEX): {"name": "globex's", "tenant": "globex"},
}


@pytest.fixture
def watch() -> Watch:
    double = auditor_double.Auditor("ledger", "state", "PRIVATE+KEY+x", VKEY, 1, 1, 1, True)
    return Watch(cast("_core.Auditor", double), 1 << 20)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = Log(tmp_path / "ledger")
    for number in range(1, 7):
        log.exchange(number, NOON + number, tenant="globex" if number % 3 == 0 else "acme")
    log.refuse(9, NOON + 9, tenant=None, code="unauthorized")
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    (tmp_path / "readers").write_text(json.dumps(READERS))
    return tmp_path


@pytest.fixture
def access_log(folder: Path) -> Iterator[AccessLog]:
    made = AccessLog(folder, 7)
    yield made
    made.close()


@pytest.fixture
def url(folder: Path, watch: Watch, access_log: AccessLog) -> Iterator[str]:
    desk = Desk(folder / "index", Readers(folder / "readers"), access_log)
    with serving(create_app(watch, desk)) as url:
        yield url


def ask(url: str, key: str | None, path: str = "", **asked: Any) -> tuple[int, Any]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    answer = httpx.get(f"{url}/v1/exchanges{path}", headers=headers, params=asked)
    return answer.status_code, answer.json()


def code_of(answer: tuple[int, Any]) -> tuple[int, str]:
    return answer[0], answer[1]["error"]["code"]


def recorded(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE).read_text().splitlines()[1:]]


def test_a_reader_of_all_sees_all_and_one_of_a_tenant_its_own(url: str) -> None:
    assert len(ask(url, ALL)[1]["exchanges"]) == 7
    for asked in ({}, {"tenant": "acme"}):
        status, found = ask(url, ACME, **asked)
        assert (status, {row["tenant"] for row in found["exchanges"]}) == (200, {"acme"})
        assert len(found["exchanges"]) == 4
    assert code_of(ask(url, ACME, tenant="globex")) == (403, "other_tenant")
    # A refusal of nobody's is the officer's to see.
    assert ask(url, ALL, outcome="unauthorized")[1]["exchanges"][0]["tenant"] is None
    assert ask(url, ACME, outcome="unauthorized")[1]["exchanges"] == []


def test_another_tenants_exchange_is_as_one_that_is_not_there(url: str) -> None:
    own, others = own_id(1, NOON + 1), own_id(3, NOON + 3)
    assert ask(url, ACME, f"/{own}")[1]["exchanges"][0]["id"] == own
    assert ask(url, ALL, f"/{others}")[0] == 200
    assert ask(url, ACME, f"/{others}") == ask(url, ACME, f"/{own_id(99, NOON)}") == ask(url, ACME, "/x")
    assert code_of(ask(url, ACME, f"/{others}")) == (404, "no_such_exchange")


def test_pages_belong_to_who_asked_for_them(url: str) -> None:
    first = ask(url, ALL, limit=2)[1]
    assert [row["id"] for row in ask(url, ALL, limit=9, after=first["next"])[1]["exchanges"]][:1] == [
        own_id(3, NOON + 3)
    ]
    assert code_of(ask(url, ACME, after=first["next"])) == (400, "cursor_differs")
    of_acme = ask(url, ACME, limit=1)[1]["next"]
    assert ask(url, ACME, limit=1, after=of_acme)[0] == 200
    assert code_of(ask(url, GLOBEX, limit=1, after=of_acme)) == (400, "cursor_differs")


@pytest.mark.parametrize("key", [None, "wrong", "acme-key", digest(ALL)])
def test_nobody_else_reads_and_the_rest_of_the_port_needs_no_key(
    url: str, folder: Path, key: str | None
) -> None:
    for path in ("", f"/{own_id(1, NOON + 1)}"):
        assert code_of(ask(url, key, path)) == (401, "not_a_reader")
    assert httpx.get(f"{url}/findings").status_code == 200
    assert httpx.get(f"{url}/v1/exchanges", headers={"Authorization": f"Basic {ALL}"}).status_code == 401
    assert recorded(folder) == []


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"verdict": "maybe"}, "bad_filter"),
        ({"tennant": "acme"}, "bad_filter"),
        ({"tenant": ["acme", "globex"]}, "bad_filter"),
        ({"after": "x"}, "bad_cursor"),
        ({"limit": 0}, "invalid_request"),
        ({"limit": 1001}, "invalid_request"),
    ],
)
def test_a_question_that_is_none_is_refused(url: str, asked: dict[str, Any], code: str) -> None:
    assert code_of(ask(url, ALL, **asked)) == (400, code)


def test_what_is_read_is_recorded_with_who_read_it(url: str, folder: Path) -> None:
    ask(url, ACME, model="gpt", limit=2)
    ask(url, ACME, f"/{own_id(3, NOON + 3)}")
    ask(url, ACME, tenant="globex")
    names = ("reader", "tenant", "asked", "rows", "refused")
    assert [tuple(entry[name] for name in names) for entry in recorded(folder)] == [
        ("acme's", "acme", {"model": "gpt", "limit": "2"}, 2, None),
        ("acme's", "acme", {"id": own_id(3, NOON + 3)}, 0, "no_such_exchange"),
        ("acme's", "acme", {"tenant": "globex"}, 0, "other_tenant"),
    ]
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert ACME not in (folder / FILE).read_text()


def test_nothing_is_answered_that_cannot_be_recorded(
    url: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        answer = ask(url, ALL)
    assert code_of(answer) == (503, "access_log_unavailable")
    assert ask(url, ALL)[0] == 200
    # The line whose writing failed may be there; the next begins a line of its own.
    assert json.loads((folder / FILE).read_text().splitlines()[-1])["rows"] == 7


def test_a_reader_does_not_fill_the_volume_of_the_auditors_state(
    url: str, access_log: AccessLog, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    assert code_of(ask(url, ACME, model="m" * 4096)) == (414, "question_too_large")
    assert code_of(ask(url, ACME, "/" + "i" * 4096)) == (414, "question_too_large")
    assert recorded(folder) == []
    monkeypatch.setattr(access_log, "_most_bytes", 1000)
    answers = [ask(url, ACME) for _ in range(10)]
    assert answers[0][0] == 200
    assert code_of(answers[-1]) == (503, "access_log_unavailable")
    assert (folder / FILE).stat().st_size <= 1000
    assert len(recorded(folder)) == [status for status, _ in answers].count(200)


def test_readers_change_with_their_file_and_none_is_left_while_it_is_no_such_file(
    url: str, folder: Path
) -> None:
    path = folder / "readers"
    assert ask(url, GLOBEX)[0] == 200
    path.write_text(json.dumps({key: value for key, value in READERS.items() if key != digest(GLOBEX)}))
    assert code_of(ask(url, GLOBEX)) == (401, "not_a_reader")
    assert ask(url, ACME)[0] == 200
    path.write_text("{")
    assert code_of(ask(url, ACME)) == (503, "readers_unusable")
    path.unlink()
    assert code_of(ask(url, ACME)) == (503, "readers_unusable")
    path.write_text(json.dumps(READERS))
    assert ask(url, ACME)[0] == 200


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "null",
        '{"secret-key": {"name": "a", "all": true}}',
        json.dumps({digest("a").upper(): {"name": "a", "all": True}}),
        json.dumps({digest("a"): {"name": "a"}}),
        json.dumps({digest("a"): {"name": "", "all": True}}),
        json.dumps({digest("a"): {"name": "a", "all": False}}),
        json.dumps({digest("a"): {"name": "a", "all": True, "tenant": "acme"}}),
        json.dumps({digest("a"): {"name": "a", "tenant": ""}}),
        json.dumps({digest("a"): {"name": "a", "tenant": 7}}),
        json.dumps({digest("a"): "acme"}),
        f'{{"{digest("a")}": {{"name":"a","all":true}}, "{digest("a")}": {{"name":"b","all":true}}}}',
        "[" * 100_000,
    ],
)
def test_a_file_of_readers_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "readers").write_text(content)
    with pytest.raises(ReadersError) as caught:
        Readers(tmp_path / "readers")
    assert "secret-key" not in str(caught.value)


def test_an_index_that_cannot_be_read_is_not_explained_to_readers(url: str, folder: Path) -> None:
    (folder / "index" / "catalogue.sqlite").unlink()
    status, answer = ask(url, ALL)
    assert (status, answer["error"]["code"]) == (503, "index_missing")
    assert str(folder) not in json.dumps(answer)


def test_what_the_auditor_accepted_is_indexed_beside_its_polls(folder: Path, watch: Watch) -> None:
    log = Log(folder / "ledger", shard=4)
    log.exchange(70, NOON + 70)
    log.sign()
    double = cast("auditor_double.Auditor", watch.auditor)
    double.heads_accepted = [(str(log.directory), (log.directory / "checkpoint").read_text())]
    with AuditedIndex(folder / "index", VKEY) as index:
        watch.on_accepted = [index.offer]
        watch.poll()
        assert eventually(lambda: len(rows(folder / "index")) == 8)
        double.failure = "no space left"
        with pytest.raises(_core.AuditorError):
            watch.poll()
    # All of them at first; then what the poll accepted, also one that failed to be written.
    assert double.since[0] == 0
    assert double.since[1:] == [double.asked[-1][0]]


def test_arguments_that_do_not_go_together_are_refused(folder: Path, capsys: Capture) -> None:
    (folder / "key").write_text("PRIVATE+KEY+proofgate.dev/ns/audit+1a2b3c4d+c2VjcmV0\n")
    usual = [
        "auditor",
        "--ledger",
        str(folder / "ledger"),
        "--state",
        str(folder / "state"),
        "--ledger-key",
        VKEY,
    ]
    usual += ["--signing-key", str(folder / "key"), "--new-aggregate"]
    for more, why in (
        (["--readers", str(folder / "readers")], "give --index"),
        (["--index", str(folder / "index"), "--once"], "stays"),
        (["--index", str(folder / "ledger" / "index")], "lies in the ledger"),
    ):
        assert main([*usual, *more]) == 2
        assert why in capsys.readouterr().err
