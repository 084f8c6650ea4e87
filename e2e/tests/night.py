"""Runs a runbook's commands and queries on the cluster with the labels of the alert."""

from __future__ import annotations

import re
import subprocess

from e2e.kubernetes import PATIENCE, CommandError, Namespace, environment
from e2e.lab_network import exchange, inside
from e2e.ports import free_port
from e2e.promql import Scrapes, asked
from e2e.runbooks import blocks, queries, variable


def carried_out(commands: str, namespace: Namespace, gateway: str, **labels: str) -> subprocess.CompletedProcess[str]:
    """Runs commands in a shell that has an alert's labels as variables; by default, the pod is the first worker."""
    values = {"namespace": namespace.name, "gateway": gateway, "pod": f"{gateway}-worker-0", "provider": "any"}
    assigned = {variable(label): value for label, value in {**values, **labels}.items()}
    shell = ["bash", "-c", forward_from_free_ports(commands)]
    return subprocess.run(shell, env={**environment(), **assigned}, capture_output=True, text=True, timeout=PATIENCE)


def forward_from_free_ports(commands: str) -> str:
    """Replaces the fixed local ports of the pages' port forwards with free ones, because other tests may use them.

    Requests through a port forward are retried for longer.
    """
    for port in set(re.findall(r"port-forward \S+ (\d+)\b", commands)):
        local = free_port()
        commands = re.sub(rf"(port-forward \S+) {port}\b", rf"\1 {local}:{port}", commands)
        commands = commands.replace(f"127.0.0.1:{port}", f"127.0.0.1:{local}")
    # On a busy machine, a port forward may need longer than an operator would wait.
    return commands.replace("--retry 3 --retry-delay 1", "--retry 100 --retry-delay 1")


def looked_into(alert: str, namespace: Namespace, gateway: str, number: int = 0, **labels: str) -> str:
    """The output of a block of commands on an alert's page. A search without a match prints nothing.

    Raises AssertionError if a command fails.
    """
    block = [block for block in blocks() if block.alert == alert and block.language == "sh"][number]
    done = carried_out(block.text, namespace, gateway, **labels)
    assert done.returncode in (0, 1) and "rror" not in done.stderr, f"{alert}: {done.stdout}{done.stderr}"
    return done.stdout


def answers(alert: str, scrapes: Scrapes, **labels: str) -> list[str]:
    """Prometheus's answer to each query of an alert's page."""
    return [asked(query, [scrapes]) for query in queries(alert, {**scrapes.labels, **labels})]


def scrapes_of(namespace: Namespace, gateway: str, pod: str) -> Scrapes:
    """An empty collection of a pod's scrapes, with the labels that the PodMonitor gives its series."""
    return Scrapes({"namespace": namespace.name, "gateway": gateway, "pod": pod})


def exposition(namespace: Namespace, pod: str, port: int) -> str:
    """The metrics that a pod exposes on a port. Raises LookupError if the pod has no address."""
    found = namespace.get("pod", pod) or {}
    address = found.get("status", {}).get("podIP")
    if not address:
        raise LookupError(f"{pod} has no address")
    answer = inside(exchange, "GET", f"http://{address}:{port}/metrics")
    if answer.status != 200:
        raise CommandError(["GET", "/metrics"], f"{answer.status} {answer.text}")
    return answer.text
