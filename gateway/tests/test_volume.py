"""A ledger directory records its owner."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from pathlib import Path

import pytest

from proofgate.volume import MARKER_FILE, VolumeError, claim

OURS = "proofgate.dev/team/llm"
THEIRS = "proofgate.dev/team/other"


def with_log(directory: Path, name: str) -> Path:
    log = directory / "0" / "01JCX0000000000000000000AA"
    log.mkdir(parents=True)
    (log / "checkpoint").write_text(f"{name}/0/{log.name}\n12\nroot\n\n— {name} signature\n")
    return log


def test_an_empty_directory_becomes_this_ledgers_and_stays_it(tmp_path: Path) -> None:
    claim(tmp_path, OURS)
    claim(tmp_path, OURS)
    assert (tmp_path / MARKER_FILE).read_text() == f"{OURS}\n"
    assert [path.name for path in tmp_path.iterdir()] == [MARKER_FILE]


def test_the_directory_of_another_ledger_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    claim(tmp_path, THEIRS)
    with pytest.raises(
        VolumeError, match=f"belongs to the ledger {THEIRS}, and this worker writes {OURS}"
    ) as refused:
        claim(tmp_path, OURS)
    assert refused.value.code == "ledger_foreign"
    assert (tmp_path / MARKER_FILE).read_text() == f"{THEIRS}\n"
    assert [path.name for path in tmp_path.iterdir()] == [MARKER_FILE]


def test_a_mark_that_somebody_wrote_puts_one_short_line_into_the_log(tmp_path: Path) -> None:
    forged = "other\n2026-11-28T00:00:00Z INFO proofgate \x1b[2Jall is well\u202e"
    (tmp_path / MARKER_FILE).write_text(forged + "x" * 60_000)
    with pytest.raises(VolumeError, match="belongs to the ledger other") as refused:
        claim(tmp_path, OURS)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600


def test_a_pipe_in_the_place_of_the_mark_or_of_a_checkpoint_keeps_no_worker_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / MARKER_FILE)
    with pytest.raises(VolumeError, match="it is not a regular file") as refused:
        claim(tmp_path, OURS)
    assert refused.value.code == "ledger_not_writable"
    (tmp_path / MARKER_FILE).unlink()
    spoiled = tmp_path / "0" / "01JCX0000000000000000000AB"
    spoiled.mkdir(parents=True)
    os.mkfifo(spoiled / "checkpoint")
    with_log(tmp_path, THEIRS)
    with pytest.raises(VolumeError, match=THEIRS):
        claim(tmp_path, OURS)


def test_a_directory_without_a_mark_belongs_to_whose_logs_it_holds(tmp_path: Path) -> None:
    with_log(tmp_path / "ours", OURS)
    with_log(tmp_path / "theirs", THEIRS)
    claim(tmp_path / "ours", OURS)
    with pytest.raises(VolumeError, match=THEIRS):
        claim(tmp_path / "theirs", OURS)


def test_a_directory_that_nobody_gave_to_the_worker_is_named_with_who_needs_it_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    # Tests may run as root, whom the kernel refuses nothing.
    monkeypatch.setattr(tempfile, "mkstemp", refused)
    with pytest.raises(VolumeError) as caught:
        claim(tmp_path, OURS)
    assert caught.value.code == "ledger_not_writable"
    told = str(caught.value)
    who = f"this worker runs as user {os.geteuid()} and group {os.getegid()}"
    assert told.startswith(f"{who}, and cannot write to {tmp_path} (Permission denied)")
    assert "fsGroup" in told
    assert "chown" in told


def test_of_two_ledgers_that_claim_at_once_one_gets_the_directory(tmp_path: Path) -> None:
    refused: list[str] = []
    together = threading.Barrier(16)

    def claimed(name: str) -> None:
        together.wait()
        try:
            claim(tmp_path, name)
        except VolumeError:
            refused.append(name)

    threads = [threading.Thread(target=claimed, args=((OURS, THEIRS)[number % 2],)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    owner = (tmp_path / MARKER_FILE).read_text().strip()
    assert refused == [({OURS, THEIRS} - {owner}).pop()] * 8


def test_a_file_system_without_hard_links_is_marked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "hardlink_to", unsupported)
    claim(tmp_path, OURS)
    assert (tmp_path / MARKER_FILE).read_text() == f"{OURS}\n"
    with pytest.raises(VolumeError):
        claim(tmp_path, THEIRS)


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VolumeError, match="cannot be marked"):
        claim(tmp_path / "missing", OURS)
