"""Mirrors of workers' logs through the auditor's copies: logs that wait, are missing, or stay copied."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from index_ledger import FIRST, NOON, SECOND, Log
from signing import RETENTION_KEY, VKEY
from test_mirror import Auditor as AnyAuditor
from test_mirror import Failing, codes
from test_replica import KilledError, Killing, Worker
from written_log import SEGMENT, change

from proofgate import _core
from proofgate.cli import main
from proofgate.mirror.aggregate import EndedLog
from proofgate.mirror.directory import DirectoryTarget
from proofgate.mirror.mirror import Mirror
from proofgate.mirror.mirror_progress import MirrorProgress
from proofgate.mirror.target import MirrorError
from proofgate.replica import replica, workers
from proofgate.replica.log_copy import LogCopy
from proofgate.replica.replica import Replica

#: More logs of the shard, each from another day.
DAYS = ["01J893T0000000000000000000", "01J8F3T0000000000000000000", "01J9F3T0000000000000000000"]
CONFIGURATION = hashlib.sha256(b"{}").hexdigest()


class Auditor(AnyAuditor):
    """An auditor of the test's logs."""

    def verifying_keys(self) -> tuple[str, str]:
        return "proofgate.dev/ns/audit+1a2b3c4d+cHVi", VKEY

    def ended(self, log: Log, kind: str = "end") -> None:
        of = {"origin": log.origin, "size": len(log.records), "checkpoint": log.sign()}
        self.entries.append({"v": 1, "kind": kind, **of})


class World:
    """A worker, the copies of its logs, and a mirror of the copies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("worker", "state", "mirror"):
            (folder / name).mkdir(parents=True)
        (folder / "worker" / "configurations").mkdir()
        (folder / "worker" / "configurations" / f"{CONFIGURATION}.json").write_text("{}")
        self.worker, self.auditor = Worker(folder / "worker"), Auditor()
        self.listed, self.logs = {"0": "url"}, list[Log]()
        self.accepted: list[tuple[str, str]] = []
        self.target: Any = DirectoryTarget(folder / "mirror")
        self.start()

    def start(self, **changes: Any) -> None:
        """Restarts the auditor with the files on its volume."""
        keys, options = (VKEY, RETENTION_KEY.verifying), {"reserve": 0} | changes
        self.copies = Replica(
            self.folder / "replica", keys, lambda: self.listed, lambda _: self.worker, **options
        )
        self.copies.enqueue(self.accepted)
        self.mirror = self.mirrored()

    def mirrored(self, **changes: Any) -> Mirror:
        auditor, state = cast("_core.Auditor", self.auditor), self.folder / "state"
        given: dict[str, Any] = {"copies": self.copies, "recheck_seconds": 0.0} | changes
        made = Mirror(self.target, auditor, self.copies.ledger, state, RETENTION_KEY.verifying, **given)
        self.copies.mirrors = [made]
        return made

    def log(self, name: str, exchanges: int = 3, *, sealed: bool = True, at: int = NOON) -> Log:
        """A worker's log that the auditor has accepted."""
        made = Log(self.folder / "worker", name, config=CONFIGURATION)
        for number in range(exchanges):
            made.exchange(number, at + number)
        if sealed:
            made.add("seal", at + exchanges)
        self.logs.append(made)
        self.accepted.append((f"ledger/0/{name}", made.sign()))
        self.copies.enqueue(self.accepted[-1:])
        return made

    def ended(self, name: str = FIRST, **more: Any) -> Log:
        made = self.log(name, **more)
        self.auditor.ended(made)
        return made

    def step(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.copies._resting.clear()
            self.copies._prune_due = 0.0
            self.copies.run_once()
            self.mirror.run_once()

    def there(self) -> list[str]:
        """The logs in the mirror."""
        done = (self.folder / "mirror" / "ledger" / "0").glob("*/checkpoint")
        return sorted(path.parent.name for path in done)

    def copied(self) -> list[str]:
        return sorted(path.parent.name for path in (self.copies.ledger / "0").glob("*/*.seg"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(workers, "RETRY_SECONDS", 0.0)
    return World(tmp_path / "world")


def test_logs_that_were_copied_are_mirrored_as_their_workers_hold_them_and_verify_when_they_come_back(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = world.ended()
    world.step(3)
    mirror = world.folder / "mirror" / "ledger" / "0" / FIRST
    assert [path.name for path in sorted(mirror.iterdir())] == [SEGMENT, "checkpoint"]
    for path in mirror.iterdir():
        assert path.read_bytes() == (log.directory / path.name).read_bytes()
    assert (world.mirror.findings(), world.mirror.lag_seconds(), world.mirror.lag_bytes) == ([], 0, 0)
    assert main(["mirror-fetch", str(world.folder / "mirror"), str(tmp_path / "back")]) == 0
    assert main(["fsck", str(tmp_path / "back"), "--mirror", "--key", VKEY]) == 0, capsys.readouterr()


def test_a_log_that_is_not_copied_yet_is_waited_for_and_holds_up_no_other(world: World) -> None:
    world.ended(DAYS[0])
    world.step(3)
    world.worker.fails_at = world.worker.requests + 1
    world.ended(DAYS[1])
    world.mirror.max_lag_seconds = 1e-9
    world.mirror.run_once()
    [found] = world.mirror.findings()
    assert (found["code"], found["verdict"]) == ("mirror_lags", "incomplete")
    assert f"0/{DAYS[1]} waits for its copy" in found["message"]
    assert world.there() == [DAYS[0]]
    world.step(3)
    assert (world.there(), world.mirror.findings()) == (DAYS[:2], [])
    assert (world.mirror.lag_seconds(), dict(world.mirror.totals.failures)) == (0, {})


def test_a_log_whose_worker_was_scaled_away_before_it_was_copied_waits_for_its_return(world: World) -> None:
    world.listed.clear()
    world.ended()
    world.mirror.max_lag_seconds = 1e-9
    world.step(3)
    [found] = world.mirror.findings()
    assert found["code"] == "mirror_lags"
    assert "the worker of shard 0 was removed by a scale-down" in found["message"]
    # It also waits after a restart.
    world.start()
    world.step(2)
    assert world.there() == []
    world.listed["0"] = "url"
    world.step(3)
    assert (world.there(), world.mirror.findings()) == ([FIRST], [])


def test_a_log_that_its_worker_no_longer_holds_and_that_was_not_copied_is_missing(world: World) -> None:
    gone = world.ended(DAYS[0])
    world.ended(DAYS[1])
    shutil.rmtree(gone.directory)
    world.step(3)
    [found] = world.mirror.findings()
    assert (found["code"], found["verdict"]) == ("mirror_log_missing", "diverged")
    assert f"0/{DAYS[0]}" in found["message"]
    assert "its worker no longer holds the log" in found["message"]
    assert world.there() == [DAYS[1]]
    assert world.mirror.lag_seconds() == 0
    # The finding is evidence, so a restarted mirror still has it.
    world.start()
    assert codes(world.mirror) == ["mirror_log_missing"]


def test_a_log_of_which_all_records_were_copied_is_mirrored_under_the_checkpoint_that_was_accepted(
    world: World, tmp_path: Path
) -> None:
    log = world.log(FIRST, sealed=False)
    world.step(2)
    shutil.rmtree(log.directory)
    of = {"origin": log.origin, "size": len(log.records), "checkpoint": world.accepted[0][1]}
    world.auditor.entries.append({"v": 1, "kind": "end", **of})
    world.step(3)
    assert (world.there(), world.mirror.findings()) == ([FIRST], [])
    assert main(["mirror-fetch", str(world.folder / "mirror"), str(tmp_path / "back")]) == 0
    assert main(["fsck", str(tmp_path / "back"), "--mirror", "--key", VKEY]) == 0


def test_a_worker_is_asked_once_in_a_round_which_logs_it_holds_however_many_are_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [world.ended(name) for name in DAYS]
    for log in logs:
        shutil.rmtree(log.directory)
    world.mirror = world.mirrored(recheck_seconds=3600.0)
    world.step()
    asked: list[str] = []

    def names(folder: str) -> list[str]:
        asked.append(folder)
        return []

    monkeypatch.setattr(world.worker, "list_folder", names)
    world.copies._resting = dict.fromkeys([f"0/{name}" for name in DAYS], float("inf"))
    world.copies.run_once()
    assert asked == ["0"]
    assert all(world.copies.status(one).is_missing_on_worker for one in world.mirror.required_logs())


def test_a_log_that_is_away_for_a_moment_is_not_missing(world: World) -> None:
    log = world.ended()
    world.mirror = world.mirrored(recheck_seconds=3600.0)
    log.directory.rename(world.folder / "away")
    world.step(3)
    (world.folder / "away").rename(log.directory)
    world.step(3)
    assert (world.there(), world.mirror.findings()) == ([FIRST], [])


def test_a_log_that_is_copied_is_mirrored_though_its_worker_has_gone_since(world: World) -> None:
    world.log(FIRST)
    # The auditor has not reported the end yet, but the last record is a seal.
    world.step()
    world.listed.clear()
    world.auditor.ended(world.logs[0])
    world.step(2)
    assert (world.there(), world.mirror.findings()) == ([FIRST], [])


def test_of_a_killed_worker_the_notes_over_its_log_are_those_that_its_worker_has_last(world: World) -> None:
    log = world.log(FIRST, sealed=False)
    world.step(2)
    assert not LogCopy(world.folder / "replica", f"0/{FIRST}").is_complete(len(log.records))
    (log.directory / f"{SECOND}.checkpoint").write_text("of another log")
    world.auditor.ended(log)
    world.step(3)
    copy = world.copies.ledger / "0" / FIRST
    assert (copy / f"{SECOND}.checkpoint").exists()
    assert world.there() == [FIRST]


def test_a_copy_is_not_removed_before_each_mirror_has_its_log(world: World) -> None:
    world.start(keep_days=1)
    for name in DAYS:
        world.ended(name)
    world.mirror.target = failing = Failing(world.target, 0)
    for _ in range(3):
        with contextlib.suppress(MirrorError):
            world.step()
    assert world.copied() == DAYS
    failing.takes = 99
    world.step(3)
    assert (world.there(), world.copied()) == (DAYS, DAYS[1:])
    # The removed log is also not copied again.
    world.start(keep_days=1)
    world.step(3)
    assert (world.copied(), world.mirror.findings()) == (DAYS[1:], [])


def test_a_mirror_that_is_new_gets_logs_whose_copies_were_removed(world: World) -> None:
    world.start(keep_days=1)
    for name in DAYS:
        world.ended(name)
    world.step(4)
    assert world.copied() == DAYS[1:]
    (world.folder / "other").mkdir()
    world.target = DirectoryTarget(world.folder / "other")
    world.start(keep_days=1)
    world.step(5)
    other = world.folder / "other" / "ledger" / "0"
    assert sorted(path.parent.name for path in other.glob("*/checkpoint")) == DAYS
    assert world.copied() == DAYS[1:]


def test_a_mirror_whose_memory_is_lost_misses_no_log_whose_copy_was_removed_since(world: World) -> None:
    world.start(keep_days=1)
    for name in DAYS:
        world.ended(name)
    world.step(4)
    [memory] = (world.folder / "state" / "mirrors").glob("*.json")
    memory.write_text("{")
    shutil.rmtree(world.logs[0].directory)
    world.start(keep_days=1)
    world.step(4)
    assert (world.mirror.findings(), world.mirror.lag_seconds()) == ([], 0)


def test_a_full_volume_has_room_again_once_the_mirror_has_what_is_too_old(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start(keep_days=1, patience=0)
    world.mirror.target = failing = Failing(world.target, 0)
    room = sum(len((world.ended(name).directory / SEGMENT).read_bytes()) for name in DAYS) * 5 // 6

    def usage(_: object) -> SimpleNamespace:
        used = sum(path.stat().st_size for path in (world.copies.ledger / "0").rglob("*.seg"))
        return SimpleNamespace(free=room - used)

    monkeypatch.setattr("shutil.disk_usage", usage)
    for _ in range(2):
        with contextlib.suppress(MirrorError):
            world.step()
    [found] = world.copies.findings()
    assert (found["code"], "must stay free" in found["message"]) == ("replica_lags", True)
    failing.takes = 99
    world.step(5)
    assert (world.there(), world.copied(), world.copies.findings()) == (DAYS, DAYS[1:], [])


def test_a_copy_that_does_not_verify_is_made_again_before_anything_is_said_of_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ended()
    world.copies.run_once()
    segment = world.copies.ledger / "0" / FIRST / SEGMENT
    segment.write_bytes(segment.read_bytes().replace(b"gpt", b"tpg"))
    monkeypatch.setattr(replica, "_REBUILD_DELAY_SECONDS", 3600.0)
    verified, read = _core.fsck_pinned, list[str]()

    def counted(directory: str, *more: Any) -> Any:
        read.append(directory)
        return verified(directory, *more)

    monkeypatch.setattr(_core, "fsck_pinned", counted)
    world.step(5)
    assert (world.there(), world.mirror.findings()) == ([], [])
    assert len(read) == 1, "the same copy is read only once"
    monkeypatch.setattr(replica, "_REBUILD_DELAY_SECONDS", 0.0)
    world.step(3)
    assert (world.there(), world.mirror.findings()) == ([FIRST], [])


def test_a_log_that_its_worker_changed_is_found_once_two_copies_do_not_verify(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "_REBUILD_DELAY_SECONDS", 0.0)
    changed, _ = world.ended(DAYS[0]), world.ended(DAYS[1])
    change(changed.directory, '"gpt"', '"tpg"')
    world.step(5)
    [found] = world.mirror.findings()
    assert (found["code"], found["verdict"]) == ("mirror_unverified", "invalid")
    assert (world.there(), world.copied()) == ([DAYS[1]], DAYS[:2])


def test_a_configuration_that_no_worker_has_is_found_until_it_is_copied(world: World) -> None:
    archived = world.folder / "worker" / "configurations" / f"{CONFIGURATION}.json"
    archived.rename(world.folder / "away")
    world.ended()
    world.step(3)
    [found] = world.mirror.findings()
    assert found["code"] == "mirror_configuration_missing"
    assert found["message"].endswith("which has not been copied from any worker yet")
    assert world.there() == [FIRST]
    (world.folder / "away").rename(archived)
    world.copies._configurations_due = world.mirror._checkpoints_due = 0.0
    world.step()
    assert world.mirror.findings() == []


def test_what_stays_of_a_removed_log_is_waited_for_until_the_copy_follows_the_removal(world: World) -> None:
    log = world.ended()
    world.step(3)
    world.auditor.ended(log, "removed")
    world.mirror.max_lag_seconds = 1e-9
    world.step(3)
    assert codes(world.mirror) == ["mirror_lags"]
    assert not (world.folder / "mirror" / "removed").exists()


def test_an_auditor_that_is_killed_at_any_write_mirrors_all_of_its_copies_after_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workers, "RETRY_SECONDS", 0.0)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda _: None)
    for last in range(1, 200):
        of = World(tmp_path / str(last))
        for name in DAYS[:2]:
            of.ended(name, exchanges=1)
        with monkeypatch.context() as patched:
            killing = Killing(patched, last)
            with contextlib.suppress(KilledError):
                of.step(3)
        of.start()
        of.step(4)
        assert (of.there(), of.mirror.findings(), of.mirror.lag_seconds()) == (DAYS[:2], [], 0), last
        for log in of.logs:
            mirrored = of.folder / "mirror" / "ledger" / "0" / log.directory.name
            for path in mirrored.glob("[!.]*"):
                assert path.read_bytes() == (log.directory / path.name).read_bytes()
        if not killing.dead:
            break
    assert 20 < last < 199, "the auditor was killed at each write"


def test_a_log_that_was_removed_is_in_a_mirror_once_what_stays_of_it_is(world: World) -> None:
    memory, log = (
        MirrorProgress.open(world.folder / "state", "mirror", "audit"),
        EndedLog(0, "0", FIRST, 3, "", False),
    )
    place = log.log_path
    assert not memory.has_log(place, removed=False)
    memory.mark_mirrored(log)
    assert (memory.has_log(place, removed=False), memory.has_log(place, removed=True)) == (True, False)
    memory.mark_mirrored(replace(log, removed=True))
    again = MirrorProgress.open(world.folder / "state", "mirror", "audit")
    assert (again.has_log(place, removed=True), again.has_log(f"0/{SECOND}", removed=False)) == (True, False)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--mirror", "elsewhere"], "--mirror needs --ledger, or --replica"),
        (["--replica", "copies", "--mirror", "copies/mirror"], "--mirror is inside --replica"),
    ],
)
def test_a_mirror_of_workers_needs_copies_and_lies_outside_of_them(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    base = ["auditor", "--worker", "0=http://127.0.0.1:1", "--state", "state", "--signing-key", "k"]
    assert main([*base, "--ledger-key", VKEY, *more]) == 2
    assert why in capsys.readouterr().err
