"""A program that a test waits for: its error contains its output and its exit, and the program is started once more."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.programs import NotReadyError, Program, start_ready

PYTHON = (sys.executable, "-c")
SERVES = "print('ready', flush=True); import signal; signal.pause()"
SILENT = "print('about to wait', flush=True); import signal; signal.pause()"


def program(folder: Path, source: str, **options: object) -> Program:
    return Program.start("program", folder, [source], PYTHON, **options)


def test_what_it_printed_is_found_while_it_runs_and_it_is_ended(folder: Path) -> None:
    started, found = start_ready(lambda: program(folder, SERVES), lambda one: one.wait_for_line("rea(dy)"))
    assert found[1] == "dy"
    assert started.stop() == -signal.SIGTERM


def test_one_that_prints_and_ends_is_reported_with_its_words_and_its_exit_code(folder: Path) -> None:
    source = "import sys; print('no such file'); sys.exit(3)"
    with pytest.raises(NotReadyError, match=r"program ended with exit code 3; it printed:\nno such file") as error:
        start_ready(lambda: program(folder, source), lambda one: one.wait_for_line("ready"))
    assert str(error.value).count("no such file") == 2, "both attempts are reported"


def test_one_that_is_ended_by_a_signal_is_reported_with_its_name(folder: Path) -> None:
    source = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(NotReadyError, match=r"program was ended by SIGKILL; it printed:\n\(nothing\)"):
        start_ready(lambda: program(folder, source), lambda one: one.wait_for_line("ready"), attempts=1)


def test_one_that_never_becomes_ready_is_reported_with_its_words_and_ended(folder: Path) -> None:
    started: list[Program] = []

    def wait(one: Program) -> None:
        started.append(one)
        one.wait_for_line("about to wait")
        one.wait_for_line("ready", seconds=0.1)

    with pytest.raises(NotReadyError, match=r"in vain until it prints 'ready': program still runs.*\nabout to wait"):
        start_ready(lambda: program(folder, SILENT), wait)
    assert [one.process.poll() for one in started] == [-signal.SIGKILL] * 2


def test_one_that_fails_the_first_time_is_started_once_more(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = folder / "first"
    source = f"""
import pathlib, sys
if not pathlib.Path({str(first)!r}).exists():
    pathlib.Path({str(first)!r}).touch()
    sys.exit('the port is taken')
{SERVES}"""
    started, _ = start_ready(lambda: program(folder, source), lambda one: one.wait_for_line("ready"))
    assert started.process.poll() is None
    assert "the port is taken" not in started.printed, "the words of each attempt are apart"
    assert "attempt 1 of 2: waited until it prints 'ready': program ended with exit code 1" in capsys.readouterr().err
    started.stop()


def test_what_is_wrong_with_the_test_itself_is_raised_at_once_and_nothing_stays(folder: Path) -> None:
    started: list[Program] = []

    def wait(one: Program) -> None:
        started.append(one)
        raise KeyError("of the test")

    with pytest.raises(KeyError):
        start_ready(lambda: program(folder, SERVES), wait)
    assert [one.process.poll() for one in started] == [-signal.SIGKILL]


def test_a_line_is_answered_and_one_that_ends_instead_is_reported(folder: Path) -> None:
    source = """
import sys
for line in sys.stdin:
    if line == 'end\\n':
        sys.exit('enough')
    print(line.upper(), end='', flush=True)
"""
    started = program(folder, source, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert [started.ask("one"), started.ask("two")] == ["ONE\n", "TWO\n"]
    for _ in range(2):
        with pytest.raises(NotReadyError, match=r"program ended with exit code 1; it printed:\nenough"):
            started.ask("end")
    assert started.stop() == 1
