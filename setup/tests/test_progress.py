"""`setup/progress` with commands that print as Cargo and pip do."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

PROGRESS = Path(__file__).resolve().parents[2] / "setup" / "progress"
CARGO = r"printf '   Compiling a v1\r\n    Building [=====>     ] 214/310: a, b\r'; "
#: A command that ends only after a progress line was read, however busy the machine is.
WAIT = "while [ ! -e '{}' ]; do sleep 0.05; done"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    every = {**os.environ, "PROOFGATE_PROGRESS_SECONDS": "0.05", **environment}
    return subprocess.run([PROGRESS, *command], capture_output=True, text=True, env=every, timeout=120)


def first_state(tmp_path: Path, script: str, *arguments: str) -> str:
    """The first progress line with a count."""
    end = tmp_path / "end"
    command = [str(PROGRESS), "worker", "sh", "-c", script + WAIT.format(end), *arguments]
    environment = {**os.environ, "PROOFGATE_PROGRESS_SECONDS": "0.05"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "," in line or " of " in line)
        end.touch()
        process.stdout.read()
    assert process.returncode == 0
    return str(line).strip()


def test_crates_are_counted_as_cargo_does(tmp_path: Path) -> None:
    assert re.fullmatch(r"worker: 214 of 310 crates, \d+:\d\d", first_state(tmp_path, CARGO))


def test_the_last_crates_are_said_to_be_linked(tmp_path: Path) -> None:
    state = first_state(tmp_path, CARGO.replace("214", "309"))
    assert state.startswith("worker: 309 of 310 crates, the last ones are linked, ")


def test_packages_are_counted_against_the_lock_file(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("# made\na==1 \\\n    --hash=sha256:0\nb==2 \\\n    --hash=sha256:1\nc==3\n")
    script = "printf 'Collecting a==1 (from -r lock)\\n  Downloading a.whl\\nCollecting b==2\\n'; "
    assert first_state(tmp_path, script, "-r", str(lock)).startswith("worker: 2 of 3 packages fetched, ")


def test_what_went_well_is_not_shown() -> None:
    done = run(
        "worker",
        "sh",
        "-c",
        "echo '   Compiling a v1' >&2; echo '    Finished release'",
        PROOFGATE_PROGRESS_SECONDS="60",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_warning_is_shown_although_all_went_well() -> None:
    script = "echo '   Compiling a v1'; echo 'warning: unused'; echo ' --> src/lib.rs:1:1'; echo '   Compiling b v1'"
    done = run("worker", "sh", "-c", script)
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["warning: unused", " --> src/lib.rs:1:1"]


def test_a_failure_shows_what_was_printed_and_how_it_ended() -> None:
    done = run("worker", "sh", "-c", "echo 'error[E1]: no'; exit 101")
    assert done.returncode == 101
    assert "error[E1]: no\n" in done.stderr
    assert re.search(r"worker failed after \d+:\d\d \(exit code 101\): sh -c ", done.stderr)


def test_a_command_that_was_killed_is_told_by_its_signal() -> None:
    done = run("worker", "sh", "-c", "kill -KILL $$")
    assert done.returncode == 137
    assert "(SIGKILL)" in done.stderr


def test_a_command_that_is_not_there_is_named() -> None:
    done = run("worker", "no-such-command")
    assert done.returncode == 127
    assert "no-such-command: No such file or directory" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["worker"]])
def test_without_a_command_the_usage_is_printed(arguments: list[str]) -> None:
    assert run(*arguments).returncode == 2
