"""`quickstart --start`: its reaction to a stop."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from proofgate.local import run
from proofgate.local.child import ChildProcess
from proofgate.local.folder import LOGS_FOLDER, QuickstartFolder
from proofgate.local.log_file import LogReader
from proofgate.local.run import StartOptions
from proofgate.local.supervisor import StopRequestedError, Supervisor

WAIT = "; print(flush=True); signal.pause()"


def stop_during_start(folder: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Returns the exit code after a signal before the worker, which runs `program`, is ready."""

    def start_child(*_: Any) -> ChildProcess:
        log = folder / LOGS_FOLDER / "worker.log"
        log.write_text("")
        process = subprocess.Popen([sys.executable, "-c", program + WAIT], stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout:
            process.stdout.readline()
        return ChildProcess("worker", process, log, re.compile(run.WORKER_READY), LogReader(log))

    def start(*given: Any) -> None:
        supervisor, children = cast("tuple[Supervisor, dict[str, ChildProcess]]", given[3:5])
        children["worker"] = supervisor.start("worker", [])
        raise StopRequestedError

    (folder / LOGS_FOLDER).mkdir()
    monkeypatch.setattr(ChildProcess, "start", start_child)
    monkeypatch.setattr(run, "_start", start)
    return run._run_supervised(QuickstartFolder(folder), cast("Any", None), StartOptions("127.0.0.1:0"))


def test_a_stop_before_the_worker_is_ready_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stop_during_start(tmp_path, "import signal", monkeypatch) == 0
    printed = capsys.readouterr()
    assert "stopped before the worker was ready" in printed.out
    assert printed.err == ""


def test_a_worker_that_fails_while_it_is_stopped_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))"
    assert stop_during_start(tmp_path, failing, monkeypatch) == 1
    assert "the worker ended with exit code 3" in capsys.readouterr().err
