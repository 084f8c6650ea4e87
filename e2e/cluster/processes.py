"""Run commands, and start the lab's daemons so that exactly these can be ended later.

A daemon joins a cgroup of the lab before it executes its program, and its child processes (such as shims) stay in the
cgroup. So the kernel knows all of them, even if the command that writes the record is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from . import cgroups
from .console import LabError, say, tail
from .layout import lab_folder, log_folder

# The shell joins the cgroup and then executes the daemon's program, so the daemon has the shell's pid.
_JOIN_THEN_EXEC = 'echo $$ > "$0" && exec "$@"'


Word = str | Path


@dataclass(frozen=True)
class Daemon:
    """One started process. Because a pid can be reused, `started` (clock ticks since boot) and `boot` identify it."""

    name: str
    pid: int
    started: int
    boot: str

    @property
    def log(self) -> Path:
        return log_folder() / f"{self.name}.log"

    @property
    def alive(self) -> bool:
        return self.boot == boot_id() and start_time(self.pid) == self.started


def run(
    command: Sequence[Word],
    *,
    timeout: float = 300.0,
    namespace: str | None = None,
    text_in: str | None = None,
    environment: dict[str, str] | None = None,
    group: str | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; the error of a failure contains its output.

    If `namespace` or `group` is set, the command runs in this network namespace or cgroup of the lab.
    """
    words = in_namespace(namespace, command)
    joined = words if group is None else in_group(group, words)
    try:
        done = subprocess.run(
            joined, text=True, input=text_in, timeout=timeout, check=False, capture_output=True,
            stdin=subprocess.DEVNULL if text_in is None else None,
            env=None if environment is None else {**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise LabError(f"{' '.join(words)} took longer than {timeout:.0f} s") from None
    except FileNotFoundError:
        raise LabError(f"{words[0]} is missing", "run `tools`, and see the packages that the README lists") from None
    if check and done.returncode != 0:
        printed = (done.stderr or done.stdout).strip()[-2000:]
        raise LabError(f"{' '.join(words)[:300]} failed with {done.returncode}", printed)
    return done


def in_namespace(namespace: str | None, command: Sequence[Word]) -> list[str]:
    """The command in a network namespace. `ip netns exec` would remount /sys, which hides the cgroups."""
    words = [str(word) for word in command]
    return words if namespace is None else ["nsenter", f"--net=/run/netns/{namespace}", "--", *words]


def in_group(group: str, words: Sequence[str]) -> list[str]:
    """The command that joins a cgroup of the lab, and then executes the given command."""
    return ["sh", "-c", _JOIN_THEN_EXEC, cgroups.joining_file(group), *words]


def start(
    name: str,
    command: Sequence[Word],
    *,
    group: str,
    namespace: str | None = None,
    environment: dict[str, str] | None = None,
    inherit: tuple[int, ...] = (),
) -> Daemon:
    """Start a daemon in its own session with its output in its log, and record it.

    The daemon joins the cgroup `group`, and keeps the file descriptors in `inherit`. It keeps no other descriptor of
    the caller, so a pipe that reads the caller's output ends with the caller.
    """
    log = log_folder() / f"{name}.log"
    words = in_group(group, in_namespace(namespace, command))
    with log.open("ab") as output:
        started = subprocess.Popen(
            words, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, pass_fds=inherit, env={**os.environ, **(environment or {})},
        )  # fmt: skip
    daemon = Daemon(name, started.pid, start_time(started.pid) or 0, boot_id())
    with _record().open("a") as record:
        record.write(json.dumps(asdict(daemon)) + "\n")
    # Python warns if a Popen object is collected while its process runs; this process is meant to outlive it.
    started.returncode = 0
    return daemon


def recorded() -> list[Daemon]:
    """The daemons that the current lab has started, oldest first."""
    try:
        lines = _record().read_text().splitlines()
    except OSError:
        return []
    daemons = []
    for line in lines:
        try:
            daemons.append(Daemon(**json.loads(line)))
        except (ValueError, TypeError):
            say("a torn line in the record of processes is passed over: the cgroups know that process")
    return daemons


def alive(name: str) -> Daemon | None:
    """The running daemon with that name, or None."""
    return next((daemon for daemon in reversed(recorded()) if daemon.name == name and daemon.alive), None)


def require(daemon: Daemon) -> None:
    """Raise LabError with the end of the daemon's log if it has ended."""
    if not daemon.alive:
        raise LabError(f"{daemon.name} has ended", blame(daemon))


def require_all() -> None:
    """Raise LabError with the log of the first daemon of the lab that has ended."""
    for daemon in {daemon.name: daemon for daemon in recorded()}.values():
        require(daemon)


def blame(daemon: Daemon) -> str:
    return f"log: {daemon.log}\n{tail(daemon.log)}"


def end(daemons: Iterable[Daemon], grace: float = 3.0) -> None:
    """End exactly these processes: with SIGTERM, and after `grace` seconds with SIGKILL."""
    remaining = [daemon for daemon in daemons if daemon.alive]
    for daemon in remaining:
        signal_process(daemon.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while (remaining := [daemon for daemon in remaining if daemon.alive]) and time.monotonic() < deadline:
        time.sleep(0.05)
    for daemon in remaining:
        signal_process(daemon.pid, signal.SIGKILL)


def end_group(group: str, timeout: float = 120.0) -> None:
    """Kill all processes in a cgroup of the lab and its subgroups, until none is left or the time is up."""
    deadline = time.monotonic() + timeout
    while members := cgroups.members(group):
        for pid in members:
            signal_process(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def start_time(pid: int) -> int | None:
    """The clock ticks from boot to the start of a process; None if it has ended or is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(fields[18])


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def signal_process(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, if it still exists."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _record() -> Path:
    return lab_folder() / "processes.jsonl"
