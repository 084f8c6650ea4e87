"""`proofgate serve` as a process of its own, on top of the core double."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from conftest import ConfigDirectory

MAIN = Path(__file__).parent / "double_main.py"
TOKEN = "0123456789abcdef-admin"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


class Process:
    """A `proofgate serve` process that announced itself."""

    def __init__(
        self, directory: ConfigDirectory, *arguments: str, env: dict[str, str] | None = None
    ) -> None:
        self.ledger = directory.ledger
        self.process = subprocess.Popen(
            [sys.executable, str(MAIN), "serve", "--config", str(directory.file), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(MAIN.parents[1] / "src"), **(env or {})},
        )
        assert self.process.stdout is not None
        self.announcement = self.process.stdout.readline()

    @property
    def admin(self) -> str:
        match = re.search(r"admin=(\S+)", self.announcement)
        assert match is not None, self.announcement
        return f"http://{match[1]}"

    def readiness(self) -> tuple[int, str]:
        response = httpx.get(f"{self.admin}/readyz")
        return response.status_code, response.text.strip()

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = httpx.get(f"{self.admin}/status").json()
        return status

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def exit_code(self) -> int:
        return self.process.wait(20)

    def nice(self, thread: int) -> int:
        """The niceness of one thread, proc_pid_stat(5) field 19."""
        stat = Path(f"/proc/{self.process.pid}/task/{thread}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[16])


@contextlib.contextmanager
def running(
    directory: ConfigDirectory, *arguments: str, env: dict[str, str] | None = None
) -> Iterator[Process]:
    worker = Process(directory, *arguments, env=env)
    try:
        yield worker
    finally:
        worker.process.kill()
        worker.process.communicate()
