"""The processes of a benchmark: pinned to a core, ended by their own id, CPU time and memory read from the kernel."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

GATEWAY_CORE = 0
LOAD_CORE = 1

_CPUCLOCK_SCHED = 2


class StartError(Exception):
    """A process ended or timed out before it was ready. The text ends with its last lines of output."""


def free_port() -> int:
    """A currently free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@dataclass(frozen=True)
class Pinned:
    """A process on one core, with its descendants."""

    pid: int
    log: Path

    def cpu_seconds(self) -> float:
        """User and system time of the living processes of the tree so far, their ended threads included."""
        return sum(_cpu_seconds(pid) for pid in tree(self.pid))

    def pause(self) -> None:
        """Stops the process tree, so that it no longer uses its core."""
        os.killpg(self.pid, signal.SIGSTOP)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Lets a paused tree run until the end of the block."""
        os.killpg(self.pid, signal.SIGCONT)
        try:
            yield
        finally:
            self.pause()

    def resident_megabytes(self) -> float:
        """Resident memory of the tree."""
        return sum(_resident_megabytes(pid) for pid in tree(self.pid))


def tree(root: int) -> list[int]:
    """`root` and all its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def _cpu_seconds(pid: int) -> float:
    # The clock that clock_getcpuclockid(3) names: nanoseconds, where /proc/<pid>/stat has hundredths of a second.
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def _resident_megabytes(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match[1]) / 1024 if match else 0.0


@contextmanager
def pinned(
    core: int,
    command: Sequence[str],
    log: Path,
    *,
    ready: str | None = None,
    port: int | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    seconds: float = 60,
) -> Iterator[Pinned]:
    """Runs `command` on `core` until the block ends; waits for a line that holds `ready`, or for `port` to answer.

    Standard output and standard error go to `log`; `environment` is added to our own; `folder` is where it runs.
    Raises StartError when the process is not ready within `seconds`.
    """
    with log.open("w") as sink:
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *command],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            # A group of its own, so that its descendants can be ended with it and with nothing else.
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + seconds
        while not (_says(log, ready) and _answers(port)):
            if process.poll() is not None:
                raise StartError(f"ended with {process.poll()}: {_last_lines(log)}")
            if time.monotonic() > deadline:
                raise StartError(f"not ready within {seconds:.0f} s: {_last_lines(log)}")
            time.sleep(0.05)
        yield Pinned(process.pid, log)
    finally:
        _end(process)


def _last_lines(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])[-500:]


def _says(log: Path, ready: str | None) -> bool:
    return ready is None or ready in log.read_text(errors="replace")


def _answers(port: int | None) -> bool:
    if port is None:
        return True
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            # A paused process would not receive the signal.
            os.killpg(process.pid, signal.SIGCONT)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        # Descendants that outlive their parent are still in its group.
        if not _group_lives(process.pid, patience=1):
            break
    process.wait()


def _group_lives(group: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    return True


class CpuMeter:
    """The CPU time of a process tree during the block."""

    def __init__(self, system: Pinned) -> None:
        self._system = system
        self.seconds = 0.0

    def __enter__(self) -> CpuMeter:
        self._before = self._system.cpu_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = self._system.cpu_seconds() - self._before
