"""An auditor's index: its errors are reported, do not affect the auditor, and can be repaired."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import auditor_double
import pytest
from conftest import HTTP, eventually, serving
from index_ledger import DAY, NOON, Log, bring_up, own_id, rows
from signing import VKEY
from written_log import change

from proofgate import _core
from proofgate.auditor.service import create_app
from proofgate.auditor.watch import LedgerWatcher
from proofgate.cli import main
from proofgate.index import audited_index, schema
from proofgate.index.access_log import AccessLog
from proofgate.index.audited_index import AuditedIndex
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import Filter
from proofgate.index.index_services import IndexServices
from proofgate.index.query import IndexSnapshot
from proofgate.index.readers import ReadersFile
from proofgate.index.routes import ReaderPort
from proofgate.index.writer import IndexWriter

pytestmark = pytest.mark.usefixtures("fake_auditor")

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the delay before a retry."""
    monkeypatch.setattr(audited_index, "RETRY_DELAY_SECONDS", 0.01)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = Log(tmp_path / "ledger")
    for number in range(1, 4):
        made.exchange(number, NOON + number)
    made.sign()
    return made


def note(log: Log) -> tuple[str, str]:
    return str(log.directory), (log.directory / "checkpoint").read_text()


def told(index: AuditedIndex, code: str) -> bool:
    return eventually(lambda: index.status().code == code)


@pytest.fixture
def double() -> auditor_double.Auditor:
    return auditor_double.Auditor("ledger", "state", "PRIVATE+KEY+x", VKEY, 1, 1, 1, True)


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[AuditedIndex]:
    """An index with another schema version."""
    IndexWriter.open(tmp_path / "index", VKEY).close()
    with sqlite3.connect(tmp_path / "index" / schema.CATALOGUE) as catalogue:
        catalogue.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")
    catalogue.close()
    with AuditedIndex(tmp_path / "index", VKEY) as index:
        yield index


def test_an_index_that_cannot_be_used_is_told_and_goes_on_once_it_can(
    broken: AuditedIndex, log: Log, tmp_path: Path
) -> None:
    broken.enqueue([note(log)])
    assert told(broken, "index_schema")
    (tmp_path / "index").rename(tmp_path / "before")
    assert told(broken, "")
    # The records that were enqueued during the error are not lost.
    assert eventually(lambda: len(rows(tmp_path / "index")) == 3)


def test_an_auditor_with_an_unusable_index_audits_and_says_so(
    broken: AuditedIndex, double: auditor_double.Auditor
) -> None:
    watch = LedgerWatcher(cast("_core.Auditor", double), 1 << 20)
    watch.on_accepted = [broken.enqueue]
    watch.poll()
    assert told(broken, "index_schema")
    with serving(create_app(watch, IndexServices(broken))) as url:
        ready = HTTP.get(f"{url}/readyz")
        assert (ready.status_code, ready.text) == (200, "ok, but the index lags [index_schema]\n")
        assert HTTP.get(f"{url}/status").json()["index"] == {
            "records": 0,
            "behind": 0,
            "code": "index_schema",
        }
        assert "\nproofgate_auditor_index_usable 0\n" in HTTP.get(f"{url}/metrics").text
    with serving(create_app(watch)) as url:
        assert HTTP.get(f"{url}/status").json()["index"] is None
        assert "auditor_index" not in HTTP.get(f"{url}/metrics").text


def test_an_index_leaves_room_on_its_volume_and_goes_on_when_there_is_more(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = audited_index.RESERVE_BYTES - 1
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    with AuditedIndex(tmp_path / "index", VKEY) as index:
        index.enqueue([note(log)])
        assert told(index, "index_full")
        assert rows(tmp_path / "index") == []
        free += 1
        assert told(index, "")
        assert len(rows(tmp_path / "index")) == 3


def test_readers_are_told_what_may_be_missing(
    log: Log, tmp_path: Path, double: auditor_double.Auditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_up(tmp_path / "index", tmp_path / "ledger")
    log.exchange(4, NOON + 4)
    log.sign()
    (tmp_path / "readers").write_text(
        json.dumps({hashlib.sha256(b"reader-key").hexdigest(): {"name": "a", "all": True}})
    )
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    access_log, watch = AccessLog(tmp_path, 7), LedgerWatcher(cast("_core.Auditor", double), 1 << 20)
    with AuditedIndex(tmp_path / "index", VKEY) as index:
        index.enqueue([note(log)])
        assert told(index, "index_full")
        paths = tmp_path / "index", tmp_path / "ledger"
        desk = ReaderPort(*paths, ReadersFile(tmp_path / "readers"), access_log, index.status)
        with serving(create_app(watch, IndexServices(index, desk))) as url:
            for path, listed in (("exchanges", 3), ("tenants", 1)):
                answer = HTTP.get(f"{url}/v1/{path}", headers={"Authorization": "Bearer reader-key"}).json()
                assert len(answer[path]) == listed
                assert answer["index"] == {"behind": 2, "code": "index_full"}
    access_log.close()


def test_a_log_that_contradicts_its_checkpoint_is_told_and_others_are_read(log: Log, tmp_path: Path) -> None:
    other = Log(tmp_path / "ledger", shard=1)
    other.exchange(1)
    other.sign()
    change(other.directory, own_id(1), own_id(2))
    with AuditedIndex(tmp_path / "index", VKEY) as index:
        index.enqueue([note(other), note(log)])
        assert told(index, "index_log_refused")
        assert len(rows(tmp_path / "index")) == 3


@pytest.mark.parametrize(
    ("today", "left"),
    [
        (NOON + 5 * DAY, ["2026-11-29", "2026-11-30"]),
        # A clock that is far ahead or behind removes no day that it should not.
        (NOON + 900 * DAY, ["2026-11-29", "2026-11-30"]),
        (NOON + DAY, ["2026-11-25", "2026-11-26", "2026-11-27", "2026-11-28", "2026-11-29", "2026-11-30"]),
    ],
)
def test_days_that_are_too_old_are_removed_by_the_clock_and_the_newest_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, today: int, left: list[str]
) -> None:
    log = Log(tmp_path / "ledger")
    for number in range(6):
        log.exchange(number, NOON + number * DAY)
    log.sign()
    index = tmp_path / "index"
    bring_up(index, tmp_path / "ledger")
    with IndexSnapshot(index) as questions:
        monkeypatch.setattr("time.time_ns", lambda: today * 1000)
        with AuditedIndex(index, VKEY, keep_days=2) as kept:
            kept.enqueue([note(log)])
            assert eventually(lambda: kept._pruned is not None)
        # An open query gets the error for a pruned day, not for a damaged index.
        if len(left) < 6:
            with pytest.raises(IndexUnusableError) as caught:
                list(questions.all_rows(Filter()))
            assert caught.value.code == "day_pruned"
    assert sorted({row["time"][:10] for row in rows(index)}) == left
    assert sorted(path.stem for path in index.glob("2*.sqlite")) == left


@pytest.mark.parametrize("days", ["0", "-1", "a", "36501", "1.5"])
def test_days_that_are_no_number_of_days_are_refused(days: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "run", "--index-days", days])
    assert "whole number of days" in capsys.readouterr().err
