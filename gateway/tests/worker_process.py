"""The command line as a separate process, with a worker that can fail."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conftest import HTTP, PATIENCE_SECONDS, ConfigDirectory

MAIN = Path(__file__).parent / "faulty_main.py"
PACKAGES = f"{MAIN.parents[1]}/src{os.pathsep}{MAIN.parents[2]}/schema/src"
TOKEN = "0123456789abcdef-admin"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


class Process:
    """A process of the command line, and the first line of its output."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(MAIN), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": PACKAGES, **(env or {})},
        )
        assert self.process.stdout is not None
        speaks, _, _ = select.select([self.process.stdout], [], [], PATIENCE_SECONDS)
        self.announcement = self.process.stdout.readline() if speaks else ""

    def announced(self, pattern: str) -> str:
        """The pattern's group in the first line; raises an error with the process's result if it does not match."""
        match = re.search(pattern, self.announcement)
        if match is None:
            code = self.process.poll()
            self.process.kill()
            _, error = self.process.communicate()
            ending = "it goes on" if code is None else f"it ended with {code}"
            raise AssertionError(f"announced {self.announcement!r}; {ending}, and said:\n{error}")
        return match[1]

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


class Worker(Process):
    """A `proofgate serve` process."""

    def __init__(
        self, directory: ConfigDirectory, *arguments: str, env: dict[str, str] | None = None
    ) -> None:
        super().__init__("serve", "--config", str(directory.file), *arguments, env=env)
        self.ledger = directory.ledger

    @property
    def admin(self) -> str:
        address = self.announced(r"admin=(\S+)")
        return f"http://{address}"

    def readiness(self) -> tuple[int, str]:
        response = HTTP.get(f"{self.admin}/readyz")
        return response.status_code, response.text.strip()

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = HTTP.get(f"{self.admin}/status").json()
        return status

    def threads(self) -> list[tuple[int, str]]:
        """Its threads, by number and name."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [(int(task.name), (task / "comm").read_text().strip()) for task in tasks]

    def thread(self, name: str) -> int:
        """The only thread whose name has this prefix."""
        [found] = [number for number, known in self.threads() if known.startswith(name)]
        return found

    def nice(self, thread: int) -> int:
        """The niceness of a thread, proc_pid_stat(5) field 19."""
        stat = Path(f"/proc/{self.process.pid}/task/{thread}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[16])


@contextlib.contextmanager
def running(
    directory: ConfigDirectory, *arguments: str, env: dict[str, str] | None = None
) -> Iterator[Worker]:
    worker = Worker(directory, *arguments, env=env)
    try:
        yield worker
    finally:
        worker.end()
