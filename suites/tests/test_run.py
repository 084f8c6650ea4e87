"""A run continues after a failure, repeats failed tests once, and ends its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from suites import report
from suites.run import Run
from suites.steps import ROOT, Command, Pytest, Step

PASSES = "def test_passes():\n    pass\n"
FAILS = "def test_fails():\n    assert 1 == 2\n"
FAILS_ONCE = """
import pathlib
def test_fails_once():
    mark = pathlib.Path(__file__).with_name("mark")
    first = not mark.exists()
    mark.touch()
    assert not first
"""


def suite(folder: Path, name: str, processes: int = 1, **files: str) -> Step:
    """A step of tests in a separate folder."""
    place = folder / name
    place.mkdir()
    for file, text in files.items():
        (place / f"test_{file}.py").write_text(text)
    return Step(name, "tests", Pytest((".",), place, processes))


def command(name: str, *arguments: str, needs: tuple[str, ...] = (), finally_: tuple[str, ...] | None = None) -> Step:
    """A build that is one command."""
    return Step(name, "build", Command(arguments), needs, finally_=finally_)


def run(folder: Path, *steps: Step) -> Run:
    """The results of the steps."""
    made = Run(steps, folder / "results", cores=2)
    made.go()
    return made


def test_a_suite_behind_one_that_failed_runs_as_well(tmp_path: Path) -> None:
    done = run(tmp_path, suite(tmp_path, "one", a=FAILS), suite(tmp_path, "two", a=PASSES))
    assert done.results["one"].failed == ["test_a.py::test_fails"]
    assert done.results["two"].passed
    assert report.finish(done, tmp_path / "results") == 1


@pytest.mark.parametrize("processes", [1, 2])
def test_a_test_that_passes_when_it_runs_again_is_flaky_and_fails_nothing(
    tmp_path: Path, processes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(tmp_path, suite(tmp_path, "one", processes, a=FAILS_ONCE, b=PASSES))
    assert done.results["one"].flaky == ["test_a.py::test_fails_once"]
    assert report.finish(done, tmp_path / "results") == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "flaky: one: test_a.py::test_fails_once",
        "2 passed, 0 failed",
    ]
    assert (tmp_path / "results" / "flaky.txt").read_text() == "one: test_a.py::test_fails_once\n"


def test_a_test_that_fails_again_fails_the_run_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(tmp_path, suite(tmp_path, "one", a=FAILS, b=PASSES))
    assert report.finish(done, tmp_path / "results") == 1
    printed = capsys.readouterr().out
    assert "assert 1 == 2" in printed
    assert printed.splitlines()[-2:] == ["failed: one: test_a.py::test_fails", "1 passed, 1 failed"]


def test_a_file_that_cannot_be_read_fails(tmp_path: Path) -> None:
    done = run(tmp_path, suite(tmp_path, "one", a="import nothing_of_this_name\n"))
    assert done.results["one"].failed == ["test_a.py"]
    assert not done.results["one"].passed


def test_a_suite_that_dies_without_a_failed_test_fails(tmp_path: Path) -> None:
    done = run(tmp_path, suite(tmp_path, "one", conftest="", a="import os\ndef test_dies():\n    os._exit(3)\n"))
    assert done.results["one"].failed == ["one"]


def test_what_needs_a_build_that_failed_is_not_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needing = command("needing", "touch", str(tmp_path / "begun"), needs=("broken",))
    done = run(tmp_path, command("broken", "false"), needing, command("after", "true", needs=("needing",)))
    assert done.results["needing"].blocked_by == "broken"
    assert done.results["after"].blocked_by == "needing"
    assert not (tmp_path / "begun").exists()
    assert report.finish(done, tmp_path / "results") == 1
    assert "not run: needing, because broken failed" in capsys.readouterr().out


def test_a_step_waits_for_what_it_needs(tmp_path: Path) -> None:
    made = tmp_path / "made"
    second = command("second", "test", "-e", str(made), needs=("first",))
    done = run(tmp_path, second, command("first", "touch", str(made)))
    assert done.results["second"].passed


def test_what_has_to_be_undone_is_undone_behind_the_repetition(tmp_path: Path) -> None:
    undone = tmp_path / "undone"
    text = f"{FAILS_ONCE}    assert not pathlib.Path({str(undone)!r}).exists()\n"
    step = suite(tmp_path, "one", a=text)
    done = run(tmp_path, Step("one", "tests", step.action, finally_=("touch", str(undone))))
    assert done.results["one"].flaky
    assert undone.exists()


def test_what_a_suite_that_passed_leaves_running_is_undone_before_the_others_end(tmp_path: Path) -> None:
    undone = tmp_path / "undone"
    first = suite(tmp_path, "one", a=PASSES)
    second = suite(
        tmp_path, "two", a=f"import pathlib\ndef test_it():\n    assert pathlib.Path({str(undone)!r}).exists()\n"
    )
    undoing = ("bash", "-c", f"! test -e {undone} && touch {undone}")
    done = run(
        tmp_path, Step("one", "tests", first.action, finally_=undoing), Step("two", "tests", second.action, ("one",))
    )
    assert done.results["two"].passed


def test_a_suite_has_what_a_command_prints_in_its_environment(tmp_path: Path) -> None:
    text = "import os\ndef test_it():\n    assert os.environ['FOUND'] == 'a b'\n"
    step = suite(tmp_path, "one", a=text)
    assert isinstance(step.action, Pytest)
    given = Pytest((".",), step.action.folder, processes=1, variables=(("FOUND", "echo a b"),))
    assert run(tmp_path, Step("one", "tests", given)).results["one"].passed


def test_times_are_kept_for_each_step_and_test(tmp_path: Path) -> None:
    done = run(tmp_path, suite(tmp_path, "one", a=PASSES))
    report.finish(done, tmp_path / "results")
    kept = json.loads((tmp_path / "results" / "times.json").read_text())
    assert [step["name"] for step in kept["steps"]] == ["one"]
    assert list(kept["steps"][0]["tests"]) == ["test_a.py::test_passes"]
    assert "test_passes" in (tmp_path / "results" / "junit" / "one.xml").read_text()


def test_an_interrupted_run_ends_what_it_started_and_undoes_it(tmp_path: Path) -> None:
    pipe, undone = tmp_path / "pipe", tmp_path / "undone"
    os.mkfifo(pipe)
    program = f"""
from pathlib import Path
from suites.run import Run
from suites.steps import Command, Step
step = Step("one", "build", Command(("bash", "-c", "echo $$ > {pipe}; exec sleep 600")), finally_=("touch", "{undone}"))
Run([step], Path("{tmp_path}") / "results").go()
"""
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.DEVNULL)
    started = int(pipe.read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) != 0
    assert undone.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)
