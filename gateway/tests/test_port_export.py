"""Exports on the auditor's port: a filter's results are recorded, and never truncated silently."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import auditor_double
import httpx
import pytest
from conftest import HTTP, PATIENCE_SECONDS, serving
from index_ledger import NOON, Log, bring_up
from signing import AUDITOR, VKEY
from starlette.requests import ClientDisconnect
from test_index_readers import ACME, ALL, READERS, recorded

from proofgate import _core
from proofgate.auditor.service import create_app
from proofgate.auditor.watch import LedgerWatcher
from proofgate.cli import main
from proofgate.index import port_export, row_formatting
from proofgate.index.access_log import AccessLog
from proofgate.index.audited_index import RESERVE_BYTES
from proofgate.index.filter import Filter
from proofgate.index.index_services import IndexServices
from proofgate.index.port_export import ExportFactory
from proofgate.index.query_limiter import TooManyQueriesError
from proofgate.index.readers import Reader, ReadersFile
from proofgate.index.routes import ReaderPort, _FileResponse

pytestmark = pytest.mark.usefixtures("fake_auditor")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def signer() -> tuple[str, str]:
    return _core.generate_key("exports.example/ours")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = Log(tmp_path / "ledger")
    for number in range(1, 10):
        log.exchange(number, NOON + number, tenant="globex" if number % 3 == 0 else "acme")
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    (tmp_path / "readers").write_text(json.dumps(READERS))
    return tmp_path


@pytest.fixture
def url(folder: Path, signer: tuple[str, str]) -> Iterator[str]:
    double = auditor_double.Auditor("ledger", "state", AUDITOR.signing, VKEY, 1, 1, 1, True)
    watch = LedgerWatcher(cast("_core.Auditor", double), 1 << 20)
    access_log = AccessLog(folder, 7)
    desk = ReaderPort(
        folder / "index", folder / "ledger", ReadersFile(folder / "readers"), access_log, export_key=signer[0]
    )
    with serving(create_app(watch, IndexServices(reader_port=desk))) as url:
        yield url
    access_log.close()


@dataclass
class Held:
    """Exports that wait for the test."""

    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go_on: threading.Event = field(default_factory=threading.Event)
    pool: ThreadPoolExecutor | None = None

    def start(self, url: str, key: str) -> Future[httpx.Response]:
        """Starts a CSV export, which waits."""
        assert self.pool is not None
        future = self.pool.submit(get, url, key, format="csv")
        assert self.begun.acquire(timeout=PATIENCE_SECONDS)
        return future


def get(url: str, key: str, **asked: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return HTTP.get(f"{url}/v1/export", headers=headers, params=asked)


def left(folder: Path) -> list[str]:
    return [path.name for path in (folder / "index").iterdir() if "export" in path.name]


def test_columns_are_those_of_the_filter_and_who_got_them_is_recorded(url: str, folder: Path) -> None:
    answer = get(url, ALL, format="csv", tenant="globex")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["tenant"] for row in rows] == ["globex"] * 3
    assert answer.headers["proofgate-exchanges"] == "3"
    assert "proofgate-cut-since" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"
    [entry] = recorded(folder)
    assert (entry["reader"], entry["rows"], entry["asked"]["of"]) == ("officer", 3, "export")
    assert left(folder) == []


def test_a_bundle_verifies_without_the_ledger_and_is_signed(
    url: str, folder: Path, signer: tuple[str, str], capsys: Capture
) -> None:
    answer = get(url, ALL, format="bundle", tenant="acme")
    assert answer.status_code == 200, answer.text
    assert answer.headers["proofgate-signed-by"] == "exports.example/ours"
    (folder / "out.tar.gz").write_bytes(answer.content)
    code = main(["audit", "verify-export", str(folder / "out.tar.gz"), "--key", VKEY, "--signer", signer[1]])
    told = capsys.readouterr().out
    assert (code, told.splitlines()[-1]) == (0, "verified")
    assert "shown: 6 exchanges, 12 records" in told
    assert left(folder) == []


def test_a_readers_export_has_its_own_tenant_alone(url: str) -> None:
    rows = list(csv.DictReader(io.StringIO(get(url, ACME, format="csv").text)))
    assert {row["tenant"] for row in rows} == {"acme"}
    assert get(url, ACME, format="csv", tenant="globex").json()["error"]["code"] == "other_tenant"
    assert get(url, "nobody", format="csv").status_code == 401


def test_what_is_too_large_is_cut_to_the_newest_and_says_so_in_the_answer_and_the_manifest(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(port_export, "MAX_EXCHANGES", {"csv": 4, "bundle": 4})
    answer = get(url, ALL, format="csv")
    assert answer.headers["proofgate-exchanges"] == "4"
    assert answer.headers["proofgate-cut-since"] == "2026-11-25T12:00:00.000006Z"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert rows[0]["time"] == "2026-11-25T12:00:00.000006Z"
    bundle = get(url, ALL, format="bundle")
    (folder / "out.tar.gz").write_bytes(bundle.content)
    assert main(["audit", "verify-export", str(folder / "out.tar.gz"), "--key", VKEY]) == 0
    assert "asked for: since 2026-11-25T12:00:00.000006Z" in capsys.readouterr().out
    monkeypatch.setattr(port_export, "MAX_EXCHANGES", {"csv": 9, "bundle": 9})
    assert "proofgate-cut-since" not in get(url, ALL, format="csv").headers


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Makes CSV exports wait until the test continues them."""
    held = Held()
    write = row_formatting.csv_header

    def slow() -> str:
        held.begun.release()
        assert held.go_on.wait(PATIENCE_SECONDS)
        return write()

    monkeypatch.setattr(port_export, "csv_header", slow)
    with ThreadPoolExecutor(4) as pool:
        held.pool = pool
        yield held
        held.go_on.set()


def test_a_reader_of_a_tenant_that_always_exports_keeps_no_officer_from_it(url: str, held: Held) -> None:
    first = held.start(url, ACME)
    assert get(url, ACME, format="bundle").json()["error"]["code"] == "busy"
    assert get(url, ALL, format="bundle", tenant="acme").status_code == 200
    officer = held.start(url, ALL)
    assert get(url, ALL, format="bundle").json()["error"]["code"] == "busy"
    held.go_on.set()
    assert [one.result(PATIENCE_SECONDS).status_code for one in (first, officer)] == [200, 200]
    assert get(url, ACME, format="bundle").status_code == 200


def test_a_client_that_takes_no_file_holds_two_of_them_and_others_get_theirs(folder: Path) -> None:
    acme, officer = Reader("acme's", "acme"), Reader("officer", None)
    exports = ExportFactory(folder / "index", folder / "ledger")
    asked = Filter.parse({})
    made = [exports.make(asked, "csv", acme) for _ in range(port_export.MAX_FILES_PER_READER)]
    with pytest.raises(TooManyQueriesError):
        exports.make(asked, "csv", acme)
    for number in range(port_export.MAX_TENANT_FILES - port_export.MAX_FILES_PER_READER):
        made.append(exports.make(asked, "csv", Reader("reader", f"tenant-{number}")))
    with pytest.raises(TooManyQueriesError):
        exports.make(asked, "csv", Reader("reader", "globex"))
    exports.make(asked, "bundle", officer).close()
    assert b"".join(made.pop(0).chunks()).startswith(b"time,")
    made.pop(0).close()
    for _ in range(2):
        made.append(exports.make(asked, "csv", acme))
    for one in made:
        one.close()
        one.close()
    for _ in range(port_export.MAX_FILES_PER_READER):
        made.append(exports.make(asked, "csv", acme))
    with pytest.raises(TooManyQueriesError):
        exports.make(asked, "csv", acme)
    for one in made:
        one.close()


def test_a_file_that_is_taken_too_slowly_is_closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_export, "DOWNLOAD_TIMEOUT_SECONDS", -1.0)
    exports = ExportFactory(folder / "index", folder / "ledger")
    made = exports.make(Filter.parse({}), "csv", Reader("officer", None))
    with pytest.raises(TimeoutError):
        list(made.chunks())
    assert made.file.closed


def test_a_client_that_is_gone_before_the_first_byte_holds_no_file(folder: Path) -> None:
    async def gone(*_: object) -> None:
        raise ConnectionResetError

    made = ExportFactory(folder / "index", folder / "ledger").make(
        Filter.parse({}), "csv", Reader("officer", None)
    )
    with pytest.raises((ConnectionResetError, ClientDisconnect)):
        asyncio.run(_FileResponse(made)({"type": "http", "asgi": {"spec_version": "2.4"}}, gone, gone))  # type: ignore[arg-type]
    assert made.file.closed


def test_an_export_leaves_the_index_its_reserve(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    free = RESERVE_BYTES + 2 * port_export.MAX_BUNDLE_BYTES - 1
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert get(url, ALL, format="csv").json()["error"]["code"] == "index_full"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free + 1))
    assert get(url, ALL, format="csv").status_code == 200


def test_bounds_of_an_export_are_told(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_export, "MAX_BUNDLE_BYTES", 1)
    assert get(url, ALL, format="bundle").json()["error"]["code"] == "export_too_large"
    monkeypatch.setattr(port_export, "EXPORT_TIMEOUT_SECONDS", -1.0)
    assert get(url, ALL, format="bundle").json()["error"]["code"] == "question_too_long"
    assert get(url, ALL, format="pdf").json()["error"]["code"] == "bad_filter"
    assert left(folder) == []


def test_an_export_that_cannot_be_recorded_is_not_given(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(AccessLog, "add", full)
    for form in ("csv", "bundle"):
        assert get(url, ALL, format=form).json()["error"]["code"] == "access_log_unavailable"
    assert left(folder) == []
