"""Kubelets that share a machine: they start one after the other, and one that has exited is reported immediately."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from e2e.cluster import kubectl, nodes, strays
from e2e.cluster.console import LabError
from e2e.cluster.layout import NODES, Node, lab_folder
from e2e.cluster.processes import Daemon, boot_id, start_time

MYSELF = start_time(os.getpid()) or 0


def running(name: str) -> Daemon:
    return Daemon(name, os.getpid(), MYSELF, boot_id())


def ended(name: str) -> Daemon:
    return Daemon(name, os.getpid(), MYSELF - 1, boot_id())


@pytest.fixture
def socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kubelet.sock"
    monkeypatch.setattr(strays, "DEVICE_PLUGIN_SOCKET", path)
    monkeypatch.setattr(nodes, "_start_proxy", lambda node: None)
    return path


def test_a_kubelet_starts_when_the_one_before_it_listens_for_device_plugins(
    socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[str] = []
    seen: list[list[str]] = []
    asked = iter(range(10))

    def start(node: Node) -> Daemon:
        seen.append(list(bound))
        return running(f"kubelet-{node.name}")

    def alive_and_binding_on_the_third_look(daemon: Daemon) -> None:
        if next(asked) % 3 == 2:
            bound.append(daemon.name)
            socket.touch()

    socket.touch()
    monkeypatch.setattr(nodes, "_start_kubelet", start)
    monkeypatch.setattr(nodes, "require", alive_and_binding_on_the_third_look)
    nodes.start_kubelets()
    first = f"kubelet-{NODES[0].name}"
    assert seen == [[], [first]], "a socket that was left behind says nothing about this kubelet"


@pytest.mark.usefixtures("socket")
def test_a_kubelet_that_ends_while_it_starts_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "_start_kubelet", lambda node: ended(f"kubelet-{node.name}"))
    with pytest.raises(LabError, match=f"kubelet-{NODES[0].name} has ended"):
        nodes.start_kubelets()


def test_waiting_for_nodes_names_a_kubelet_that_had_ended_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl, "ready_nodes", lambda: {NODES[0].name})
    lab_folder().mkdir(parents=True)
    record = [running(f"kubelet-{NODES[0].name}"), ended(f"kubelet-{NODES[1].name}")]
    (lab_folder() / "processes.jsonl").write_text("".join(f"{json.dumps(asdict(daemon))}\n" for daemon in record))
    with pytest.raises(LabError, match=f"kubelet-{NODES[1].name} has ended"):
        nodes.wait_until_ready(timeout=0.1)
