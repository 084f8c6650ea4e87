"""Clients that print the start and end of their measuring window."""

from __future__ import annotations

import subprocess

from bench.processes import Pinned


def read_window(command: list[str], gateway: Pinned) -> tuple[str, float]:
    """Runs a client that says when its window opens and closes; its last line, and what the gateway used meanwhile."""
    opened = closed = 0.0
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
        assert client.stdout is not None  # it was asked for
        for line in client.stdout:
            if line.startswith("window opens"):
                opened = gateway.cpu_seconds()
            elif line.startswith("window closes"):
                closed = gateway.cpu_seconds()
            else:
                last = line
    return last, closed - opened
