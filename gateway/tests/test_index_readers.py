"""The index on the auditor's port: access rights of readers, and a record of each read before its answer."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import auditor_double
import pytest
from conftest import HTTP, eventually, serving
from failures import failure
from index_ledger import DAY, NOON, SECOND, Log, bring_up, own_id, rows
from signing import AUDITOR, VKEY

from proofgate import _core
from proofgate.auditor.service import create_app
from proofgate.auditor.watch import LedgerWatcher
from proofgate.cli import main
from proofgate.index.access_log import AccessLog
from proofgate.index.audited_index import AuditedIndex
from proofgate.index.index_services import IndexServices
from proofgate.index.readers import ReadersError, ReadersFile
from proofgate.index.routes import ReaderPort
from proofgate.index.schema import format_time

pytestmark = pytest.mark.usefixtures("fake_auditor")

#: The access log of a test, which started at 7 microseconds.
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
def watch() -> LedgerWatcher:
    double = auditor_double.Auditor("ledger", "state", "PRIVATE+KEY+x", VKEY, 1, 1, 1, True)
    return LedgerWatcher(cast("_core.Auditor", double), 1 << 20)


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
def url(folder: Path, watch: LedgerWatcher, access_log: AccessLog) -> Iterator[str]:
    desk = ReaderPort(folder / "index", folder / "ledger", ReadersFile(folder / "readers"), access_log)
    with serving(create_app(watch, IndexServices(reader_port=desk))) as url:
        yield url


def ask(url: str, key: str | None, path: str = "", **asked: Any) -> tuple[int, Any]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    answer = HTTP.get(f"{url}/v1/exchanges{path}", headers=headers, params=asked)
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
    # Only the officer sees refused requests without a tenant.
    assert ask(url, ALL, outcome="unauthorized")[1]["exchanges"][0]["tenant"] is None
    assert ask(url, ACME, outcome="unauthorized")[1]["exchanges"] == []


def test_another_tenants_exchange_is_as_one_that_is_not_there(url: str) -> None:
    own, others = own_id(1, NOON + 1), own_id(3, NOON + 3)
    assert ask(url, ACME, f"/{own}")[1]["exchanges"][0]["id"] == own
    assert ask(url, ALL, f"/{others}")[0] == 200
    assert ask(url, ACME, f"/{others}") == ask(url, ACME, f"/{own_id(99, NOON)}") == ask(url, ACME, "/x")
    assert code_of(ask(url, ACME, f"/{others}")) == (404, "no_such_exchange")


def test_no_path_tells_a_tenants_reader_of_another_tenant(
    url: str, watch: LedgerWatcher, folder: Path, access_log: AccessLog
) -> None:
    desk = ReaderPort(folder / "index", folder / "ledger", ReadersFile(folder / "readers"), access_log)
    found = [
        getattr(route, "path", "") for route in create_app(watch, IndexServices(reader_port=desk)).routes
    ]
    paths = sorted(path for path in found if path.startswith("/v1/"))
    assert {"/v1/exchanges", "/v1/overview", "/v1/names", "/v1/export"} <= set(paths)
    headers = {"Authorization": f"Bearer {ACME}"}
    told = 0
    for path in paths:
        for asked in ({}, {"format": "csv"}, {"format": "bundle"}, {"tenant": "acme"}, {"tenant": "globex"}):
            others = path.replace("{request_id}", own_id(3, NOON + 3))
            answer = HTTP.get(f"{url}{others}", headers=headers, params=asked)
            assert b"globex" not in answer.content, (path, asked)
            told += answer.status_code == 200 and b"acme" in answer.content
    assert told > 10, "the reader gets its own tenant's data"


def test_a_reader_gets_the_records_of_an_exchange_with_their_proofs_and_not_those_of_another_tenants(
    url: str, folder: Path
) -> None:
    own, others = own_id(1, NOON + 1), own_id(3, NOON + 3)
    status, receipt = ask(url, ACME, f"/{own}/receipt")
    assert (status, receipt["id"], receipt["complete"]) == (200, own, True)
    assert [of["kind"] for of in receipt["records"]] == ["admission", "completion"]
    for of in receipt["records"]:
        assert json.loads(of["record"])["id"] == own
        assert of["proof"].startswith(f"c2sp.org/tlog-proof@v1\nindex {of['index']}\n")
        assert of["proof"].split("\n\n", 1)[1].startswith("proofgate.dev/ns/demo/0/")
    assert code_of(ask(url, ACME, f"/{others}/receipt")) == (404, "no_such_exchange")
    assert [(entry["asked"], entry["rows"]) for entry in recorded(folder)] == [
        ({"id": own, "of": "receipt"}, 2),
        ({"id": others, "of": "receipt"}, 0),
    ]


def test_records_that_the_ledger_does_not_give_are_not_made_up_and_no_path_is_told(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed(directory: str, *_: object) -> None:
        raise failure(_core.LedgerError, f"{directory} was removed", "log_removed")

    monkeypatch.setattr(_core, "log_records", removed)
    status, answer = ask(url, ALL, f"/{own_id(1, NOON + 1)}/receipt")
    assert (status, answer["error"]["code"]) == (410, "log_removed")
    assert str(folder) not in json.dumps(answer)
    assert recorded(folder)[-1]["refused"] == "log_removed"


def test_tenants_add_up_and_a_reader_of_one_sees_its_own(url: str, folder: Path) -> None:
    status, found = ask(url, ALL, "/../tenants")
    assert status == 200
    assert [(of["tenant"], of["exchanges"], of["refused"]) for of in found["tenants"]] == [
        ("acme", 4, 0),
        ("globex", 2, 0),
        (None, 1, 1),
    ]
    rows = ask(url, ALL, tenant="acme")[1]["exchanges"]
    acme = found["tenants"][0]
    for name in ("prompt_tokens", "completion_tokens", "cost_nanodollars"):
        assert acme[name] == sum(row[name] or 0 for row in rows)
    assert acme["shards"] == ["0"]
    assert [day["exchanges"] for day in acme["days"]] == [4]
    assert [of["tenant"] for of in ask(url, ACME, "/../tenants")[1]["tenants"]] == ["acme"]
    assert code_of(ask(url, ACME, "/../tenants", tenant="globex")) == (403, "other_tenant")
    assert code_of(ask(url, ALL, "/../tenants", model="gpt")) == (400, "bad_filter")
    assert ask(url, ALL, "/../tenants", since="2030-01-01")[1]["tenants"] == []
    # The same holds for a time range that starts and ends within a day.
    within = ask(url, ALL, "/../tenants", since=format_time(NOON + 2), until=format_time(NOON + 5))[1][
        "tenants"
    ]
    assert [(of["tenant"], of["exchanges"]) for of in within] == [("acme", 2), ("globex", 1)]
    assert [entry["rows"] for entry in recorded(folder) if entry["asked"].get("of") == "tenants"] == [
        *(3, 1, 0, 0, 0, 2)
    ]


def test_of_budgets_and_of_analysis_a_reader_of_a_tenant_sees_its_own_alone(url: str, folder: Path) -> None:
    for path, name in (("budgets", "tenants"), ("analysis", "windows")):
        headers = {"Authorization": f"Bearer {ACME}"}
        own = HTTP.get(f"{url}/v1/{path}", headers=headers)
        assert own.status_code == 200
        assert {of["tenant"] for of in own.json()[name]} <= {"acme"}
        assert "globex" not in own.text
        other = HTTP.get(f"{url}/v1/{path}", headers=headers, params={"tenant": "globex"})
        assert code_of((other.status_code, other.json())) == (403, "other_tenant")
        bad = HTTP.get(f"{url}/v1/{path}", headers=headers, params={"rule": "x"})
        assert code_of((bad.status_code, bad.json())) == (400, "bad_filter")
        assert HTTP.get(f"{url}/v1/{path}").status_code == 401
    asked = [json.loads(line) for line in (folder / FILE).read_text().splitlines()[1:]]
    assert [read["asked"]["of"] for read in asked] == ["budgets"] * 3 + ["analysis"] * 3


def test_what_providers_say_of_tokens_overflows_no_total_and_too_many_days_are_refused(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(folder / "most", SECOND)
    for number in range(4):
        usage = {"prompt_tokens": 9_223_372_036_854_775_807, "completion_tokens": 0}
        log.exchange(number, NOON + DAY, end={"usage": usage})
    log.sign()
    bring_up(folder / "index", folder / "most", 3)
    status, found = ask(url, ALL, "/../tenants")
    assert (status, found["tenants"][0]["prompt_tokens"]) == (200, (4 << 63) + 12)
    monkeypatch.setattr("proofgate.index.totals.MAX_TENANT_DAYS", 2)
    assert code_of(ask(url, ALL, "/../tenants")) == (400, "bad_filter")
    assert ask(url, ACME, "/../tenants")[0] == 200


def test_a_reader_is_told_who_it_is(url: str) -> None:
    assert ask(url, ALL, "/../reader") == (200, {"name": "officer", "tenant": None})
    assert ask(url, ACME, "/../reader") == (200, {"name": "acme's", "tenant": "acme"})


def test_of_a_question_that_is_watched_one_line_is_recorded_for_all_of_a_minute(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 1000.0
    monkeypatch.setattr("proofgate.index.repeated_queries.monotonic", lambda: clock)
    watched = {"watch": "true", "newest": "true", "limit": "5"}
    for _ in range(3):
        assert ask(url, ACME, **watched)[0] == 200
    assert [(entry["asked"], entry["for_seconds"]) for entry in recorded(folder)] == [(watched, 60)]
    # Another query, another reader and a refused query each have their own line.
    ask(url, ACME, **watched, model="gpt")
    ask(url, ALL, **watched)
    for _ in range(2):
        ask(url, ACME, **watched, tenant="globex")
    assert [entry["reader"] for entry in recorded(folder)[1:]] == ["acme's", "officer", "acme's", "acme's"]
    clock += 60
    ask(url, ACME, **watched)
    assert len(recorded(folder)) == 6


def test_what_is_watched_is_not_answered_while_no_line_of_it_can_be_recorded(
    url: str, access_log: AccessLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "_most_bytes", 0)
    for _ in range(2):
        assert code_of(ask(url, ACME, watch="true")) == (503, "access_log_unavailable")


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
    own = own_id(1, NOON + 1)
    for path in ("", f"/{own}", f"/{own}/receipt", "/../tenants", "/../reader"):
        assert code_of(ask(url, key, path)) == (401, "not_a_reader")
    assert HTTP.get(f"{url}/findings").status_code == 200
    assert HTTP.get(f"{url}/v1/exchanges", headers={"Authorization": f"Basic {ALL}"}).status_code == 401
    assert [(of["sign_in"], of["peer"]) for of in recorded(folder)] == [("not_a_reader", "127.0.0.1")]


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


def test_no_answer_to_a_reader_is_kept_by_a_cache(url: str, folder: Path) -> None:
    own, others = own_id(1, NOON + 1), own_id(3, NOON + 3)
    with sqlite3.connect(folder / "index" / "catalogue.sqlite") as catalogue:
        catalogue.execute("INSERT INTO meta VALUES ('pruned_before', ?)", (NOON // 86_400_000_000,))
    catalogue.close()
    paths = {
        "exchanges": 200,
        f"exchanges/{own}": 200,
        f"exchanges/{own}/receipt": 200,
        "tenants": 200,
        "reader": 200,
        "exchanges?verdict=maybe": 400,
        "exchanges?tenant=globex": 403,
        f"exchanges/{others}": 404,
        "tenants?since=2001-01-01": 410,
        f"exchanges/{'i' * 4096}": 414,
    }
    for path, status in paths.items():
        answer = HTTP.get(f"{url}/v1/{path}", headers={"Authorization": f"Bearer {ACME}"})
        assert (answer.status_code, answer.headers.get("cache-control")) == (status, "no-store"), path
    assert HTTP.get(f"{url}/v1/reader").headers["cache-control"] == "no-store"


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
    # The line whose write failed may be in the file; the next entry starts a new line.
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
        json.dumps({digest("a"): {"name": "a", "all": True, "notAfter": "soon"}}),
        json.dumps({digest("a"): {"name": "a", "all": True, "notAfter": 7}}),
        f'{{"{digest("a")}": {{"name":"a","all":true}}, "{digest("a")}": {{"name":"b","all":true}}}}',
        "[" * 100_000,
    ],
)
def test_a_file_of_readers_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "readers").write_text(content)
    with pytest.raises(ReadersError) as caught:
        ReadersFile(tmp_path / "readers")
    assert "secret-key" not in str(caught.value)


def test_an_index_that_cannot_be_read_is_not_explained_to_readers(url: str, folder: Path) -> None:
    (folder / "index" / "catalogue.sqlite").unlink()
    status, answer = ask(url, ALL)
    assert (status, answer["error"]["code"]) == (503, "index_missing")
    assert str(folder) not in json.dumps(answer)


def test_what_the_auditor_accepted_is_indexed_beside_its_polls(folder: Path, watch: LedgerWatcher) -> None:
    log = Log(folder / "ledger", shard=4)
    log.exchange(70, NOON + 70)
    log.sign()
    double = cast("auditor_double.Auditor", watch.auditor)
    double.heads_accepted = [(str(log.directory), (log.directory / "checkpoint").read_text())]
    with AuditedIndex(folder / "index", VKEY) as index:
        watch.on_accepted = [index.enqueue]
        watch.poll()
        assert eventually(lambda: len(rows(folder / "index")) == 8)
        double.failure = "no space left"
        with pytest.raises(_core.AuditorError):
            watch.poll()
    # The first call is for all heads; the next is for heads of the last poll, although it failed.
    assert double.since[0] == 0
    assert double.since[1:] == [double.asked[-1][0]]


def test_arguments_that_do_not_go_together_are_refused(folder: Path, capsys: Capture) -> None:
    (folder / "key").write_text(AUDITOR.signing)
    usual = [
        "audit",
        "run",
        "--ledger",
        str(folder / "ledger"),
        "--state",
        str(folder / "state"),
        "--ledger-key",
        VKEY,
    ]
    usual += ["--signing-key", str(folder / "key"), "--new-aggregate"]
    for more, why in (
        (["--readers", str(folder / "readers")], "--readers needs --index"),
        (["--index", str(folder / "index"), "--once"], "cannot be combined with --once"),
        (["--index", str(folder / "ledger" / "index")], "is inside the ledger"),
    ):
        assert main([*usual, *more]) == 2
        assert why in capsys.readouterr().err
