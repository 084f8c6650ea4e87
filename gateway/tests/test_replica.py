"""Copies of workers' logs contain exactly the accepted records that their workers hold, also after an
interrupted copy."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from conftest import eventually
from index_ledger import FIRST, NOON, SECOND, Log, own_id, rows
from signing import RETENTION_KEY, VKEY
from written_log import SEGMENT

from proofgate import _core
from proofgate.auditor.worker_files import WorkerError
from proofgate.index.audited_index import AuditedIndex
from proofgate.reading.files import LedgerFiles, LedgerReadError
from proofgate.replica import log_copy, replica, workers
from proofgate.replica.log_copy import CopyError, LogCopy
from proofgate.replica.replica import Replica
from proofgate.siem.cursor import EventCursor
from proofgate.siem.stream import EventStream

PLACE = f"0/{FIRST}"
Answer = TypeVar("Answer")


class Worker:
    """A worker that serves a ledger's folder; request number `fails_at` fails, counted from the last reset."""

    def __init__(self, ledger: Path) -> None:
        self._files = LedgerFiles(ledger)
        self.requests, self.fails_at = 0, -1

    def start_round(self) -> None:
        pass

    def list_folder(self, folder: str) -> list[str]:
        return self._answer(lambda: self._files.names(folder))

    def read(self, path: str, offset: int, most: int) -> tuple[int, bytes]:
        return self._answer(lambda: self._files.read(path, offset, most))

    def _answer(self, ask: Callable[[], Answer]) -> Answer:
        self.requests += 1
        if self.requests == self.fails_at:
            raise WorkerError("it cannot be reached")
        try:
            return ask()
        except LedgerReadError as error:
            raise FileNotFoundError(str(error)) from None


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "worker"


@pytest.fixture
def log(ledger: Path) -> Log:
    made = Log(ledger)
    for number in range(1, 40):
        made.exchange(number, NOON + number, model=f"model-{number}" * 20)
    made.sign()
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "replica"


def copies(root: Path, worker: Worker, **changes: Any) -> Replica:
    """The copies of one worker's shard, on a volume with free space."""
    keys = changes.pop("keys", (VKEY, RETENTION_KEY.verifying))
    return Replica(root, keys, lambda: {"0": "url"}, lambda _: worker, **{"reserve": 0, **changes})


def offered(*logs: Log) -> list[tuple[str, str]]:
    return [(f"ledger/0/{of.directory.name}", (of.directory / "checkpoint").read_text()) for of in logs]


def verified(folder: Path, note: str) -> bool:
    """Whether a folder contains all records that a checkpoint covers."""
    reader = _core.ExchangeReader(str(folder), note, VKEY)
    size = 0
    while (batch := reader.next()) is not None:
        size = batch.size
    return size == reader.size


def test_a_copy_grows_with_its_log_and_holds_nothing_behind_the_accepted_checkpoint(
    log: Log, ledger: Path, root: Path
) -> None:
    worker, whole = Worker(ledger), len(log.records)
    note = (log.directory / "checkpoint").read_text()
    log.exchange(40, NOON + 40)
    newer = log.sign()
    with (log.directory / SEGMENT).open("ab") as file:
        file.write(bytes(1 << 20))
    copy = LogCopy(root, PLACE)
    copy.copy_records(worker, whole)
    assert verified(copy.folder, note)
    segment = log.directory / SEGMENT
    copied = (copy.folder / SEGMENT).read_bytes()
    assert own_id(40, NOON + 40).encode() in segment.read_bytes()
    assert segment.read_bytes().startswith(copied)
    assert own_id(40, NOON + 40).encode() not in copied
    again = LogCopy(root, PLACE)
    again.copy_records(worker, len(log.records))
    assert verified(again.folder, newer)
    asked = worker.requests
    LogCopy(root, PLACE).copy_records(worker, len(log.records))
    assert worker.requests == asked, "copied records are not read again"


class KilledError(BaseException):
    """The process was killed: later calls have no effect."""


class Killing:
    """Kills a process at one of its writes, after half of the content is on disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
        self._left, self.dead = last, False
        write_all, replace, unlink = log_copy._write_all, Path.replace, Path.unlink
        fdatasync, fsync = os.fdatasync, os.fsync

        def write(file: io.FileIO, content: bytes) -> None:
            if self._is_last():
                write_all(file, content[: len(content) // 2])
            self._die()
            write_all(file, content)

        def at_once(call: Callable[..., Any]) -> Callable[..., Any]:
            def killed(*arguments: Any, **named: Any) -> Any:
                self._is_last()
                self._die()
                return call(*arguments, **named)

            return killed

        monkeypatch.setattr(log_copy, "_write_all", write)
        monkeypatch.setattr(Path, "replace", at_once(replace))
        monkeypatch.setattr(Path, "unlink", at_once(unlink))
        monkeypatch.setattr(os, "fdatasync", at_once(fdatasync))
        monkeypatch.setattr(os, "fsync", at_once(fsync))

    def _is_last(self) -> bool:
        was_dead, self._left = self.dead, self._left - 1
        self.dead = self.dead or self._left == 0
        return self.dead and not was_dead

    def _die(self) -> None:
        if self.dead:
            raise KilledError


def test_a_copy_that_was_killed_at_any_write_goes_on_and_is_whole(
    log: Log, ledger: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, size = (log.directory / "checkpoint").read_text(), len(log.records)
    monkeypatch.setattr(log_copy, "_FIRST_READ_BYTES", 4096)
    monkeypatch.setattr(log_copy, "_MAX_READ_BYTES", 1 << 13)
    for last in range(1, 100):
        place = root / str(last)
        LogCopy(place, PLACE).copy_records(Worker(ledger), 20)
        with monkeypatch.context() as patched:
            killing = Killing(patched, last)
            with contextlib.suppress(KilledError):
                LogCopy(place, PLACE).copy_records(Worker(ledger), size)
        LogCopy(place, PLACE).copy_records(Worker(ledger), size)
        assert verified(place / "ledger" / PLACE, note)
        assert (place / "ledger" / PLACE / SEGMENT).read_bytes() == (log.directory / SEGMENT).read_bytes()
        if not killing.dead:
            break
    assert 5 < last < 99, "the process was killed at each write"


def test_a_worker_that_breaks_off_at_any_request_is_read_on(
    log: Log, ledger: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, size = (log.directory / "checkpoint").read_text(), len(log.records)
    monkeypatch.setattr(log_copy, "_FIRST_READ_BYTES", 4096)
    monkeypatch.setattr(log_copy, "_MAX_READ_BYTES", 1 << 13)
    for at in range(1, 100):
        worker = Worker(ledger)
        worker.fails_at = at
        copy = LogCopy(root / str(at), PLACE)
        try:
            copy.copy_records(worker, size)
        except WorkerError:
            LogCopy(root / str(at), PLACE).copy_records(worker, size)
        else:
            break
        assert verified(copy.folder, note)
    assert 3 < at < 99, "each request has failed"


@pytest.mark.parametrize("spoil", ["shortened", "removed", "without a cursor"])
def test_a_copy_that_was_spoiled_meanwhile_is_made_again(
    log: Log, ledger: Path, root: Path, spoil: str
) -> None:
    worker, note = Worker(ledger), (log.directory / "checkpoint").read_text()
    LogCopy(root, PLACE).copy_records(worker, 20)
    segment = root / "ledger" / PLACE / SEGMENT
    if spoil == "shortened":
        os.truncate(segment, 200)
    elif spoil == "removed":
        segment.unlink()
    else:
        [cursor] = (root / "cursors").iterdir()
        cursor.write_text("{")
    of = copies(root, worker)
    of.enqueue(offered(log))
    of.run_once()
    of._resting.clear()
    of.run_once()
    assert verified(segment.parent, note)
    assert of.lag_seconds() == 0


def test_a_worker_with_fewer_records_than_were_accepted_is_told(log: Log, ledger: Path, root: Path) -> None:
    with pytest.raises(CopyError, match="has 79 of its 99 accepted records"):
        LogCopy(root, PLACE).copy_records(Worker(ledger), 99)
    of = copies(root, Worker(ledger), patience=0)
    of.enqueue([(f"ledger/{PLACE}", offered(log)[0][1].replace("\n79\n", "\n99\n"))])
    taken: list[tuple[str, str]] = []
    of.on_copied = [taken.extend]
    of.run_once()
    [found] = of.findings()
    assert (found["code"], found["verdict"], taken) == ("replica_lags", "incomplete", [])
    assert "has 79 of its 99 accepted records" in found["message"]


def test_an_index_reads_the_copies_and_no_record_that_was_changed_on_the_way(
    log: Log, ledger: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "_REBUILD_DELAY_SECONDS", 0.0)
    monkeypatch.setattr("proofgate.index.indexer.RETRY_DELAY_SECONDS", 0.0)
    segment = log.directory / SEGMENT
    honest = segment.read_bytes()
    segment.write_bytes(honest.replace(b"model-7", b"model-8"))
    of = copies(root, Worker(ledger))
    with AuditedIndex(tmp_path / "index", VKEY, reserve=0, ledger=of.ledger) as index:
        of.on_copied, of.rejected_by_readers = [index.enqueue], [index.rejected_origins]
        of.enqueue(offered(log))
        of.run_once()
        assert eventually(lambda: index.status().code == "index_log_refused")
        assert rows(tmp_path / "index") == []
        segment.write_bytes(honest)
        of.run_once()
        assert eventually(lambda: len(rows(tmp_path / "index")) == 39)
        assert eventually(lambda: index.status().code == "")


def test_a_full_volume_stops_the_copies_with_a_finding_and_room_lets_them_go_on(
    log: Log, ledger: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = replica.RESERVE_BYTES + 100
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    of = copies(root, Worker(ledger), reserve=replica.RESERVE_BYTES, patience=0)
    taken: list[tuple[str, str]] = []
    of.on_copied = [taken.extend]
    of.enqueue(offered(log))
    of.run_once()
    [found] = of.findings()
    assert found["code"] == "replica_lags"
    assert "512 MiB must stay free" in found["message"]
    assert taken == []
    free += 1 << 30
    of.run_once()
    assert of.findings() == []
    assert taken == [(str(of.ledger / PLACE), offered(log)[0][1])]


def test_a_later_log_of_a_shard_waits_for_the_earlier_ones_of_a_worker_that_cannot_be_read(
    log: Log, ledger: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Log(ledger, SECOND)
    later.sign()
    worker = Worker(ledger)
    worker.fails_at = 1
    monkeypatch.setattr(workers, "RETRY_SECONDS", 0.0)
    of = copies(root, worker)
    taken: list[tuple[str, str]] = []
    of.on_copied = [taken.extend]
    of.enqueue(offered(log, later))
    of.run_once()
    assert taken == []
    of.run_once()
    assert [Path(folder).name for folder, _ in taken] == [FIRST, SECOND]


def test_copies_that_are_older_than_the_index_keeps_are_removed_once_sinks_have_them(
    ledger: Path, root: Path
) -> None:
    first, second, third = (f"01J{name}3T0000000000000000000" for name in ("89", "8F", "9F"))
    logs = [Log(ledger, name) for name in (first, second, third)]
    for of in logs:
        of.sign()
    made = copies(root, Worker(ledger), keep_days=1)
    sent: dict[str, int] = {}
    made.read_counts = [lambda: sent]
    made.enqueue(offered(*logs))
    made.run_once()
    assert len(list((made.ledger / "0").iterdir())) == 3
    sent |= {of.origin: len(of.records) for of in logs}
    made._prune_due = 0.0
    made.run_once()
    left = sorted(path.name for path in (made.ledger / "0").iterdir())
    assert left == [second, third]
    again = copies(root, Worker(ledger), keep_days=1)
    again.read_counts = [lambda: sent]
    again.enqueue(offered(*logs))
    again.run_once()
    assert sorted(path.name for path in (again.ledger / "0").iterdir()) == left, (
        "a removed log is not copied again"
    )


def test_what_configurations_records_name_is_copied_and_nothing_that_differs_from_its_name(
    ledger: Path, root: Path
) -> None:
    content, other = b'{"tenants": []}', "ab" * 32
    digest = hashlib.sha256(content).hexdigest()
    log = Log(ledger, config=digest)
    log.add("config", NOON, config=other)
    log.sign()
    (ledger / "configurations").mkdir()
    (ledger / "configurations" / f"{digest}.json").write_bytes(content)
    (ledger / "configurations" / f"{other}.json").write_bytes(b"{}")
    of = copies(root, Worker(ledger))
    of.enqueue(offered(log))
    of.run_once()
    copied = of.ledger / "configurations" / f"{digest}.json"
    assert list(copied.parent.iterdir()) == [copied]
    # The state of an auditor that was killed before it copied the configurations.
    copied.unlink()
    again = copies(root, Worker(ledger))
    again.enqueue(offered(log))
    again.run_once()
    assert copied.read_bytes() == content


def test_a_tombstone_that_the_retention_key_did_not_sign_removes_no_copy(
    log: Log, ledger: Path, root: Path
) -> None:
    worker, note = Worker(ledger), (log.directory / "checkpoint").read_text()
    copy = LogCopy(root, PLACE)
    copy.copy_records(worker, len(log.records))
    (log.directory / "tombstone").write_text("proofgate.dev/tombstone\n")
    with pytest.raises(CopyError, match="its tombstone is refused"):
        copy.apply_removal(worker, note, VKEY, RETENTION_KEY.verifying)
    assert verified(copy.folder, note)


def test_every_copied_log_is_looked_for_at_its_worker_again_and_again(
    ledger: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def follow(copy: LogCopy, *_: object) -> bool:
        asked.append(copy.place)
        return False

    of = copies(root, Worker(ledger))
    logs = [Log(ledger, f"{FIRST[:-2]}{number:02}") for number in range(11)]
    for one in logs:
        one.sign()
        of.enqueue(offered(one))
        of.run_once()
    monkeypatch.setattr(LogCopy, "apply_removal", follow)
    for _ in range(3):
        of.run_once()
    # Each round checks eight of the eleven logs.
    assert sorted(asked.count(f"0/{one.directory.name}") for one in logs) == [2] * 9 + [3] * 2


def test_copies_are_read_while_their_worker_is_away_and_a_configuration_is_missing(
    ledger: Path, root: Path
) -> None:
    log = Log(ledger, config="ab" * 32)
    log.sign()
    LogCopy(root, PLACE).copy_records(Worker(ledger), len(log.records))
    worker = Worker(ledger)
    worker.fails_at = 1
    of = copies(root, worker)
    taken: list[tuple[str, str]] = []
    of.on_copied = [taken.extend]
    of.enqueue(offered(log))
    of.run_once()
    assert [Path(folder).name for folder, _ in taken] == [FIRST]


def test_a_sink_is_sent_what_copies_hold_and_says_how_far_it_is(log: Log, ledger: Path, root: Path) -> None:
    sent: list[Any] = []

    class Taking:
        name = "otlp+https://siem.example.com"

        def send(self, events: Sequence[Any]) -> None:
            sent.extend(events)

    state = root.parent / "state"
    state.mkdir()
    cursor = EventCursor(state, "sink", VKEY)
    stream = EventStream(Taking(), cursor, VKEY)
    of = copies(root, Worker(ledger), keep_days=0)
    offers: dict[str, str] = {}
    of.on_copied, of.read_counts = [offers.update], [cursor.sent_counts]
    of.enqueue(offered(log))
    of.run_once()
    assert cursor.sent_counts() == {}
    stream.send(offers)
    assert len(sent) == 39
    assert cursor.sent_counts() == {log.origin: len(log.records)}
    cursor.close()


def test_a_worker_that_has_left_the_list_is_waited_for_without_a_finding(
    log: Log, ledger: Path, root: Path
) -> None:
    workers: dict[str, str] = {}
    of = Replica(root, (VKEY, None), lambda: workers, lambda _: Worker(ledger), reserve=0, patience=0)
    of.enqueue(offered(log))
    of.run_once()
    assert of.findings() == []
    workers["0"] = "url"
    of.run_once()
    assert of.findings() == []
    assert verified(of.ledger / PLACE, offered(log)[0][1])
