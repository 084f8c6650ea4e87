"""A pod that is stopped while it starts ends before its grace period is over."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofgate_operator.build.pods import graceful_stop_lifecycle, wait_for_handler
from tests.haproxy_bench import PATIENCE, eventually

STARTING = """
import signal, sys
print("starts", flush=True)
sys.stdin.readline()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("serves", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def starting() -> Iterator[subprocess.Popen[str]]:
    """A Python process that has no handler for SIGTERM until it reads a line."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "starts\n"
            yield process
        finally:
            process.kill()


def hook(process: int, folder: Path) -> subprocess.Popen[bytes]:
    """Run the stop hook for a process; it writes a line to a file in `folder` at each pause."""
    pause = folder / "sleep"
    pause.write_text(f"#!/bin/sh\necho pauses >> {folder / 'pauses'}\nexec /bin/sleep 0.01\n")
    pause.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.Popen(["/bin/sh", "-c", wait_for_handler(process)], env=environment)


def test_what_stops_a_process_waits_until_it_can_be_stopped(
    starting: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert starting.stdin is not None
    assert starting.stdout is not None
    waiting = hook(starting.pid, tmp_path)
    pauses = tmp_path / "pauses"
    eventually(
        lambda: pauses.exists() and len(pauses.read_text().split()) > 2, "the hook has checked repeatedly"
    )
    assert waiting.poll() is None
    starting.stdin.write("serve\n")
    starting.stdin.flush()
    assert starting.stdout.readline() == "serves\n"
    assert waiting.wait(PATIENCE) == 0
    starting.send_signal(signal.SIGTERM)
    assert starting.wait(PATIENCE) == 0


def test_what_stops_a_process_does_not_wait_for_one_that_is_gone(
    starting: subprocess.Popen[str], tmp_path: Path
) -> None:
    waiting = hook(starting.pid, tmp_path)
    starting.kill()
    starting.wait()
    assert waiting.wait(PATIENCE) == 0


def test_the_hook_is_about_the_first_process_of_its_container() -> None:
    command = graceful_stop_lifecycle()["preStop"]["exec"]["command"]
    assert command == ["/bin/sh", "-c", wait_for_handler(1)]
    chart = Path(__file__).parents[2] / "charts" / "proofgate-operator" / "templates" / "deployment.yaml"
    assert f"- {wait_for_handler(1)}\n" in chart.read_text()
