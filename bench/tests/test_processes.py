"""Processes of a benchmark begin, are measured, and end."""

import sys
import time
from pathlib import Path

import pytest

from bench.machine import CoreMeter
from bench.processes import LOAD_CORE, CpuMeter, StartError, pinned, tree

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("child", child.pid, flush=True)
child.wait()
"""
SPINNER = "print('ready', flush=True)\nwhile True: pass"


def lives(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_process_and_its_descendants_end_with_the_block(tmp_path: Path) -> None:
    with pinned(LOAD_CORE, [sys.executable, "-c", PARENT], tmp_path / "log", ready="child ") as process:
        child = int((tmp_path / "log").read_text().split()[1])
        assert set(tree(process.pid)) == {process.pid, child}
    assert not lives(child)
    assert not lives(process.pid)


def test_memory_is_that_of_the_whole_tree(tmp_path: Path) -> None:
    with pinned(LOAD_CORE, [sys.executable, "-c", PARENT], tmp_path / "log", ready="child ") as process:
        alone = tmp_path / "alone"
        with pinned(LOAD_CORE, [sys.executable, "-c", SPINNER], alone, ready="ready") as single:
            assert process.resident_megabytes() > single.resident_megabytes() > 1


def test_cpu_time_is_counted_while_the_block_runs(tmp_path: Path) -> None:
    with pinned(LOAD_CORE, [sys.executable, "-c", SPINNER], tmp_path / "log", ready="ready") as process:
        deadline = time.monotonic() + 60
        with CpuMeter(process) as meter:
            # Read within the block, because the meter does not count the CPU time before it.
            before = process.cpu_seconds()
            while process.cpu_seconds() < before + 0.05 and time.monotonic() < deadline:
                pass
    assert meter.seconds >= 0.05


def test_a_process_that_ends_early_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such model')"]
    with (
        pytest.raises(StartError, match="ended with 1: no such model"),
        pinned(LOAD_CORE, command, tmp_path / "log", ready="ready"),
    ):
        pass


def test_a_process_that_never_gets_ready_is_ended(tmp_path: Path) -> None:
    with (
        pytest.raises(StartError, match="not ready within 0 s"),
        pinned(LOAD_CORE, [sys.executable, "-c", SPINNER], tmp_path / "log", ready="never", seconds=0.2),
    ):
        pass


def test_the_share_of_a_busy_core_lies_between_nothing_and_all() -> None:
    with CoreMeter(LOAD_CORE) as meter:
        deadline = time.monotonic() + 0.05
        while time.monotonic() < deadline:
            pass
    assert 0 <= meter.busy_share <= 1


def test_a_paused_process_takes_no_time_wakes_for_a_block_and_ends_all_the_same(tmp_path: Path) -> None:
    with pinned(LOAD_CORE, [sys.executable, "-c", SPINNER], tmp_path / "log", ready="ready") as process:
        process.pause()
        state = Path(f"/proc/{process.pid}/stat")
        deadline = time.monotonic() + 60
        while ") T" not in state.read_text() and time.monotonic() < deadline:
            pass
        before = process.cpu_seconds()
        with process.awake():
            while process.cpu_seconds() == before and time.monotonic() < deadline:
                pass
        assert process.cpu_seconds() > before
        while ") T" not in state.read_text():
            assert time.monotonic() < deadline, "it is paused again"
    assert not lives(process.pid)
