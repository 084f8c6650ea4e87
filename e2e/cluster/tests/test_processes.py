"""The record of started processes: it must never name a process that the lab did not start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from e2e.cluster import current, processes, routes, state
from e2e.cluster.console import LabError, wait_until
from e2e.cluster.layout import lab_folder
from e2e.cluster.processes import Daemon, boot_id, start_time


def test_a_reused_pid_is_not_ours() -> None:
    started = start_time(os.getpid())
    assert started is not None
    assert Daemon("me", os.getpid(), started, boot_id()).alive
    assert not Daemon("me", os.getpid(), started - 1, boot_id()).alive
    assert not Daemon("me", os.getpid(), started, "another boot").alive


def test_end_leaves_the_holder_of_a_reused_pid_alone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        processes.end([Daemon("stranger", child.pid, 1, boot_id())], grace=0)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_end_ends_what_is_ours() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    processes.end([Daemon("ours", child.pid, start_time(child.pid) or 0, boot_id())])
    assert child.wait(timeout=60) != 0


def test_a_torn_line_in_the_record_is_passed_over() -> None:
    lab_folder().mkdir(parents=True)
    whole = '{"name": "etcd", "pid": 1, "started": 2, "boot": "b"}'
    (lab_folder() / "processes.jsonl").write_text(f'{whole}\n{{"name": "api')
    assert processes.recorded() == [Daemon("etcd", 1, 2, "b")]


def test_a_failing_command_says_what_it_printed() -> None:
    with pytest.raises(LabError, match="no such thing"):
        processes.run(["sh", "-c", "echo no such thing >&2; exit 3"])


def test_waiting_ends_with_the_guilty_log() -> None:
    with pytest.raises(LabError, match="the log says why"):
        wait_until("nothing", lambda: False, timeout=0.01, blame=lambda: "the log says why", pause=0.001)


def test_the_current_context_is_used_only_when_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("e2e.cluster.kind.engine_answers", lambda: False)
    monkeypatch.delenv("CLUSTER", raising=False)
    assert routes.chosen() == "local"
    monkeypatch.setenv("CLUSTER", "current")
    assert routes.chosen() == "current"


def test_a_lab_that_is_up_is_not_forgotten_for_another_route(monkeypatch: pytest.MonkeyPatch) -> None:
    state.create("local")
    monkeypatch.delenv("CLUSTER", raising=False)
    assert routes.chosen() == "local"
    monkeypatch.setenv("CLUSTER", "kind")
    with pytest.raises(LabError, match="a local lab is up"):
        routes.chosen()


def test_the_current_cluster_is_never_changed() -> None:
    with pytest.raises(LabError, match="not the lab's to change"):
        current.load_image("haproxy")
