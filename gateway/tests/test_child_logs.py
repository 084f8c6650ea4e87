"""Logs of the children of `quickstart --start`: files of limited size without lost lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proofgate.local import log_file
from proofgate.local.log_file import LogReader, open_log, previous_log_path, rotate_if_full

MAXIMUM = 1000


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


@pytest.fixture
def stream(log: Path) -> Iterator[int]:
    """A file descriptor whose output goes to the log."""
    descriptor = open_log(log)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def write(stream: int) -> Callable[[str], None]:
    def write(line: str) -> None:
        os.write(stream, f"{line}\n".encode())

    return write


def test_a_log_that_is_written_for_ever_has_two_files_of_about_the_maximum(
    log: Path, stream: int, write: Callable[[str], None]
) -> None:
    lines = [f"line {number}" for number in range(1000)]
    for line in lines:
        write(line)
        rotate_if_full(log, MAXIMUM, [stream])
    assert sorted(path.name for path in log.parent.iterdir()) == ["worker.log", "worker.log.1"]
    assert max(path.stat().st_size for path in (log, previous_log_path(log))) <= MAXIMUM + len("line 1000")
    kept = (previous_log_path(log).read_text() + log.read_text()).splitlines()
    assert kept == lines[-len(kept) :]


def test_the_parent_reads_every_line_once_however_often_the_log_is_rotated(
    log: Path, stream: int, write: Callable[[str], None]
) -> None:
    write("of an earlier start")
    reader = LogReader(log)
    lines = [f"line {number}" for number in range(1000)]
    read: list[str] = []
    for line in lines:
        write(line)
        rotate_if_full(log, MAXIMUM, [stream])
        read += reader.lines()
    reader.close()
    assert read == lines


def test_a_line_that_ends_in_the_former_file_after_the_rotation_is_read(
    log: Path, stream: int, write: Callable[[str], None]
) -> None:
    reader = LogReader(log)
    late = os.dup(stream)
    write("x" * MAXIMUM)
    rotate_if_full(log, MAXIMUM, [stream])
    assert list(reader.lines()) == ["x" * MAXIMUM]
    os.write(late, b"a write in flight\n")
    os.close(late)
    write("next")
    assert list(reader.lines()) == ["a write in flight", "next"]
    reader.close()


def test_a_log_that_cannot_be_rotated_goes_on_in_its_file(
    log: Path, stream: int, write: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("x" * MAXIMUM)

    def full(_: Path) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_file, "open_log", full)
    with pytest.raises(OSError, match="No space left"):
        rotate_if_full(log, MAXIMUM, [stream])
    write("after")
    assert log.read_text().endswith("\nafter\n")
    assert not previous_log_path(log).exists()
