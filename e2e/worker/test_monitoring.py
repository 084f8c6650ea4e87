"""What alerts and dashboards ask for, the programs tell."""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from pathlib import Path

from prometheus_client import generate_latest
from proofgate.front_door.agent import targets
from proofgate.front_door.follower import Follower
from proofgate.front_door.metrics import render
from proofgate.front_door.runtime_api import RuntimeApi
from proofgate_operator import metrics

from e2e.local_gateway import local_gateway, wait_until
from e2e.metric_names import asked_for, exposed, expressions

HAPROXY = """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
frontend metrics
    mode http
    bind unix@{socket}
    http-request use-service prometheus-exporter
backend workers
    server worker-0 127.0.0.1:1
"""
#: The kubelet's, for the volume.
ELSEWHERE = {"kubelet_volume_stats_available_bytes", "kubelet_volume_stats_capacity_bytes"}


def beginning_with(prefix: str) -> set[str]:
    """The metrics asked for whose names begin so."""
    found = {name for name in asked_for(expressions()) if name.startswith(prefix)}
    assert found
    return found


def test_every_metric_that_is_asked_for_belongs_to_one_of_the_programs() -> None:
    ours = beginning_with("proofgate_") | beginning_with("haproxy_")
    assert asked_for(expressions()) - ours == ELSEWHERE


def test_every_metric_of_the_worker_that_is_asked_for_exists(folder: Path) -> None:
    # A stage has no series before profiling has been on.
    with (
        local_gateway(folder, settings={"profiling": {"stages": True}}) as gateway,
        urllib.request.urlopen(f"http://{gateway.admin}/metrics", timeout=10) as answer,
    ):
        told = exposed(answer.read().decode())
    others = beginning_with("proofgate_operator_") | beginning_with("proofgate_front_door_")
    assert beginning_with("proofgate_") - others - told == set()


def test_every_metric_of_the_agent_beside_haproxy_that_is_asked_for_exists(folder: Path) -> None:
    found = targets(RuntimeApi(folder / "haproxy.sock"), [folder / "tenants.map"], None, folder / "tls.crt")
    assert beginning_with("proofgate_front_door_") - exposed(render(Follower(found))) == set()


def test_every_metric_of_the_operator_that_is_asked_for_exists() -> None:
    told = exposed(generate_latest(metrics.REGISTRY).decode())
    assert beginning_with("proofgate_operator_") - told == set()


def test_every_metric_of_haproxy_that_is_asked_for_exists(folder: Path) -> None:
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    socket = folder / "metrics.sock"
    (folder / "haproxy.cfg").write_text(HAPROXY.format(socket=socket))
    process = subprocess.Popen([program, "-db", "-f", str(folder / "haproxy.cfg")])
    try:
        wait_until(socket.exists, 30, "HAProxy listens")
        command = ["curl", "-sS", "--unix-socket", str(socket), "http://haproxy/metrics"]
        told = exposed(subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout)
    finally:
        process.terminate()
        process.wait(30)
    assert beginning_with("haproxy_") - told == set()
