"""A runbook's commands and queries on the cluster, with the labels of the alert that somebody has just got."""

from __future__ import annotations

import re
import subprocess

from e2e.kubernetes import PATIENCE, CommandError, Namespace, environment
from e2e.lab_network import exchange, inside
from e2e.ports import free_port
from e2e.promql import Scrapes, asked
from e2e.runbooks import blocks, queries, variable


def carried_out(commands: str, namespace: Namespace, gateway: str, **labels: str) -> subprocess.CompletedProcess[str]:
    """What came of commands in a shell that knows an alert's labels; the pod is the first worker if none is given."""
    values = {"namespace": namespace.name, "gateway": gateway, "pod": f"{gateway}-worker-0", "provider": "any"}
    assigned = {variable(label): value for label, value in {**values, **labels}.items()}
    shell = ["bash", "-c", forward_from_free_ports(commands)]
    return subprocess.run(shell, env={**environment(), **assigned}, capture_output=True, text=True, timeout=PATIENCE)


def forward_from_free_ports(commands: str) -> str:
    """Forwards from free local ports in place of the pages' fixed ones, on which other tests may listen."""
    for port in set(re.findall(r"port-forward \S+ (\d+)\b", commands)):
        local = free_port()
        commands = re.sub(rf"(port-forward \S+) {port}\b", rf"\1 {local}:{port}", commands)
        commands = commands.replace(f"127.0.0.1:{port}", f"127.0.0.1:{local}")
    return commands


def looked_into(alert: str, namespace: Namespace, gateway: str, number: int = 0, **labels: str) -> str:
    """What a block of commands of an alert's page prints. A search that finds nothing prints nothing, and no command
    may fail: AssertionError."""
    block = [block for block in blocks() if block.alert == alert and block.language == "sh"][number]
    done = carried_out(block.text, namespace, gateway, **labels)
    assert done.returncode in (0, 1) and "rror" not in done.stderr, f"{alert}: {done.stdout}{done.stderr}"
    return done.stdout


def answers(alert: str, scrapes: Scrapes, **labels: str) -> list[str]:
    """What Prometheus answers to each query of an alert's page."""
    return [asked(query, [scrapes]) for query in queries(alert, {**scrapes.labels, **labels})]


def scrapes_of(namespace: Namespace, gateway: str, pod: str) -> Scrapes:
    """None so far of a pod, with the labels that the PodMonitor gives its series."""
    return Scrapes({"namespace": namespace.name, "gateway": gateway, "pod": pod})


def exposition(namespace: Namespace, pod: str, port: int) -> str:
    """What a pod exposes on a port. Raises LookupError if the pod has no address."""
    found = namespace.get("pod", pod) or {}
    address = found.get("status", {}).get("podIP")
    if not address:
        raise LookupError(f"{pod} has no address")
    answer = inside(exchange, "GET", f"http://{address}:{port}/metrics")
    if answer.status != 200:
        raise CommandError(["GET", "/metrics"], f"{answer.status} {answer.text}")
    return answer.text
