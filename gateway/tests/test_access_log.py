"""The access log: it grows, its head is reported, and a change is detected."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import auditor_double
import pytest
from signing import AUDITOR, LEDGER

from proofgate import _core
from proofgate.auditor.watch import LedgerWatcher
from proofgate.cli import main
from proofgate.index.access_log import AccessLog, AccessLogHead, find_log_files

pytestmark = pytest.mark.usefixtures("fake_auditor")

Capture = pytest.CaptureFixture[str]


def opened(folder: Path, told: AccessLogHead | None = None, now: int = 7, **bounds: int) -> AccessLog:
    return AccessLog(folder, now, told, **bounds)


def written(folder: Path, lines: int, told: AccessLogHead | None = None, **bounds: int) -> AccessLogHead:
    """Adds lines, and returns the new head."""
    log = opened(folder, told, **bounds)
    for number in range(lines):
        log.add({"line": number})
    log.close()
    return log.head()


def first_file(folder: Path) -> Path:
    return min(folder.glob("access-*.jsonl"))


def test_a_log_goes_on_where_it_was_and_has_one_root_however_often_it_was_opened(tmp_path: Path) -> None:
    (tmp_path / "once").mkdir()
    (tmp_path / "often").mkdir()
    told = None
    for _ in range(5):
        told = written(tmp_path / "often", 2, told)
    log = opened(tmp_path / "once")
    for _ in range(5):
        for number in range(2):
            log.add({"line": number})
    assert log.head() == told == (7, 10, told[2] if told else b"")


def test_files_follow_each_other_and_old_ones_can_be_moved_away(tmp_path: Path) -> None:
    told = written(tmp_path, 90, file_bytes=400)
    files = find_log_files(tmp_path)[7]
    assert len(files) > 2
    assert max(part.path.stat().st_size for part in files) <= 400
    for part in files[:-1]:
        part.path.unlink()
    log = opened(tmp_path, told)
    assert (log.changed, log.head()) == (None, told)


def test_all_files_together_take_no_more_room_than_they_may(tmp_path: Path) -> None:
    log = opened(tmp_path, file_bytes=300, most_bytes=1000)

    def fill() -> None:
        for number in range(1000):
            log.add({"line": number})

    with pytest.raises(OSError, match="move older files away"):
        fill()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000 + 300
    size = log.head()[1]
    first_file(tmp_path).unlink()
    log.add({"line": "there is room again"})
    assert log.head()[1] == size + 1


def edit(folder: Path) -> None:
    path = first_file(folder)
    path.write_bytes(path.read_bytes().replace(b'{"line":1}', b'{"line":9}', 1))


def take_out(folder: Path) -> None:
    path = first_file(folder)
    path.write_bytes(path.read_bytes().replace(b'{"line":1}\n', b"", 1))


def cut(folder: Path) -> None:
    path = max(folder.glob("access-*.jsonl"))
    path.write_bytes(path.read_bytes().rsplit(b"\n", 2)[0] + b"\n")


def remove(folder: Path) -> None:
    for path in folder.glob("access-*.jsonl"):
        path.unlink()


def remove_one(folder: Path) -> None:
    sorted(folder.glob("access-*.jsonl"))[1].unlink()


def forge_peaks(folder: Path) -> None:
    path = max(folder.glob("access-*.jsonl"))
    header, rest = path.read_bytes().split(b"\n", 1)
    told = json.loads(header)
    told["peaks"] = [base64.b64encode(bytes(32)).decode() for _ in told["peaks"]]
    path.write_bytes(json.dumps(told).encode() + b"\n" + rest)


def spoil_the_beginning(folder: Path) -> None:
    path = max(folder.glob("access-*.jsonl"))
    path.write_bytes(b"{" + path.read_bytes())


@pytest.mark.parametrize("attack", [edit, take_out, cut, remove])
def test_a_log_that_is_not_what_was_told_is_found_and_another_one_is_begun(
    tmp_path: Path, attack: Callable[[Path], None]
) -> None:
    told = written(tmp_path, 5)
    attack(tmp_path)
    log = opened(tmp_path, told, now=8)
    assert log.changed
    assert log.head()[:2] == (8, 0)
    log.add({"line": 0})
    assert log.head()[:2] == (8, 1)


@pytest.mark.parametrize("attack", [forge_peaks, spoil_the_beginning])
def test_the_beginning_of_a_file_is_believed_only_if_it_leads_to_what_was_told(
    tmp_path: Path, attack: Callable[[Path], None]
) -> None:
    told = written(tmp_path, 40, file_bytes=200)
    attack(tmp_path)
    assert opened(tmp_path, told).changed


def test_a_line_that_a_crash_cut_stays_and_the_next_one_is_whole(tmp_path: Path) -> None:
    written(tmp_path, 1)
    with first_file(tmp_path).open("a") as file:
        file.write('{"reader":"some')
    head = written(tmp_path, 1)
    assert first_file(tmp_path).read_text().splitlines()[1:] == [
        '{"line":0}',
        '{"reader":"some',
        '{"line":0}',
    ]
    assert opened(tmp_path, head).changed is None
    assert head[1] == 3


@pytest.mark.parametrize("part", [0, 4, 10, 11])
def test_what_a_failed_write_left_is_a_line_and_the_next_start_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    log = opened(tmp_path)
    log.add({"line": 0})
    write = os.write

    def cut_off(file: int, content: bytes) -> int:
        return write(file, content[:part])

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", cut_off)
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            log.add({"line": 1})
    log.add({"line": 2})
    assert log.head()[1] == (3 if part else 2)
    assert opened(tmp_path, log.head()).changed is None


def test_a_file_that_somebody_shortens_takes_no_more_lines(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.add({"line": 0})
    os.truncate(first_file(tmp_path), 5)
    with pytest.raises(OSError, match="truncated"):
        log.add({"line": 1})


def test_each_poll_tells_how_the_log_stands(tmp_path: Path) -> None:
    double = auditor_double.Auditor("ledger", "state", AUDITOR.signing, LEDGER.verifying, 1, 1, 1, True)
    watch = LedgerWatcher(cast("_core.Auditor", double), 0)
    log = opened(tmp_path)
    watch.access_log_head = log.head
    watch.poll()
    assert double.reads is None
    log.add({"line": 0})
    watch.poll()
    assert double.reads == log.head()


class State:
    """The state of an auditor that has reported heads of an access log, in signed notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = _core.Tree()
        self.bundle = b""

    def tell(self, head: AccessLogHead) -> str:
        """Appends a head, and returns the new checkpoint of the aggregate log."""
        origin = f"{AUDITOR.name}/access/{head[0]}"
        note = AUDITOR.checkpoint(origin, head[1], head[2])
        self.append({"v": 1, "kind": "head", "origin": "a/0/X", "size": 1, "checkpoint": "note"})
        return self.append({"v": 1, "kind": "access", "origin": origin, "size": head[1], "checkpoint": note})

    def append(self, entry: dict[str, Any]) -> str:
        line = json.dumps(entry).encode()
        self.tree.push(line)
        self.bundle += len(line).to_bytes(2, "big") + line
        tiles = self.folder / "tile" / "entries" / "000.p"
        tiles.mkdir(parents=True, exist_ok=True)
        (tiles / str(self.tree.size)).write_bytes(self.bundle)
        note = AUDITOR.checkpoint(AUDITOR.name, self.tree.size, self.tree.root)
        (self.folder / "checkpoint").write_text(note)
        return note


def checked(folder: Path, *more: str) -> int:
    return main(["audit", "access-log", str(folder), "--key", AUDITOR.verifying, *more])


def test_the_command_says_of_a_log_that_it_is_what_was_told(tmp_path: Path, capsys: Capture) -> None:
    state = State(tmp_path)
    state.tell(written(tmp_path, 30, file_bytes=200))
    held = tmp_path / "held"
    held.write_text(state.tell(written(tmp_path, 5, file_bytes=200)))
    written(tmp_path, 2, file_bytes=200)
    assert checked(tmp_path, "--against", str(held)) == 0
    assert "lines 0 to 37; not covered by a tree head yet: 2 lines" in capsys.readouterr().out
    away = tmp_path / "away"
    away.mkdir()
    first_file(tmp_path).rename(away / first_file(tmp_path).name)
    assert checked(tmp_path) == 0
    assert checked(tmp_path, "--files", str(away)) == 0


@pytest.mark.parametrize(
    "attack", [edit, take_out, cut, remove, remove_one, forge_peaks, spoil_the_beginning]
)
def test_the_command_finds_what_was_changed(tmp_path: Path, attack: Callable[[Path], None]) -> None:
    State(tmp_path).tell(written(tmp_path, 30, file_bytes=200))
    attack(tmp_path)
    assert checked(tmp_path) == 30


def test_the_command_finds_an_auditors_log_that_was_made_anew_with_the_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "forged").mkdir()
    held = tmp_path / "held"
    real, forged = State(tmp_path / "real"), State(tmp_path / "forged")
    held.write_text(real.tell(written(tmp_path / "real", 30)))
    forged.tell(written(tmp_path / "forged", 29))
    assert checked(tmp_path / "forged") == 0, "the forged log alone is consistent"
    assert checked(tmp_path / "forged", "--against", str(held)) == 30
    held.write_text(real.tell(written(tmp_path / "real", 1)))
    assert checked(tmp_path / "forged", "--against", str(held)) == 30


@pytest.mark.parametrize("damage", [b"[", b"x", b""])
def test_the_command_finds_an_auditors_log_whose_entries_are_damaged(tmp_path: Path, damage: bytes) -> None:
    State(tmp_path).tell(written(tmp_path, 3))
    bundle = tmp_path / "tile" / "entries" / "000.p" / "2"
    (bundle.parent / "draft").write_bytes(b"")
    (bundle.parent / "1").unlink()
    for content in (
        bundle.read_bytes().replace(b'{"v"', damage + b'"v"', 1),
        bundle.read_bytes()[:-3],
        damage,
    ):
        bundle.write_bytes(content)
        assert checked(tmp_path) == 30


def test_the_command_reads_nothing_where_there_is_no_state(tmp_path: Path, capsys: Capture) -> None:
    assert checked(tmp_path / "nowhere") == 2
    assert "cannot be read" in capsys.readouterr().err
