"""The processes of a benchmark: pinned to a core, ended by their own id, their CPU time read from the kernel."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

GATEWAY_CORE = 0
LOAD_CORE = 1


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@dataclass
class Pinned:
    """A process on one core."""

    process: subprocess.Popen[str]

    def cpu_seconds(self) -> float:
        """User and system time of the process and all its threads so far."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def resident_megabytes(self) -> float:
        """Resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(match[1]) / 1024 if match else 0.0


@contextmanager
def pinned(core: int, command: list[str], ready: str | None = None, port: int | None = None) -> Iterator[Pinned]:
    """Runs `command` on `core` until the block ends; waits for a line that holds `ready`, or for `port` to answer."""
    output = subprocess.PIPE if ready else subprocess.DEVNULL
    full = ["taskset", "-c", str(core), *command]
    process = subprocess.Popen(full, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, text=True)
    try:
        if ready and process.stdout:
            for line in process.stdout:
                if ready in line:
                    break
            threading.Thread(target=process.stdout.read, daemon=True).start()
        if port:
            wait_for_port(port)
        yield Pinned(process)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_port(port: int, seconds: float = 15) -> None:
    """Waits until something accepts connections on a loopback port."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
