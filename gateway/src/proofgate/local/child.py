"""A child process with a log file, in which the parent finds the ready line and warnings."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proofgate.local.log_file import LogReader, open_log

_PR_SET_PDEATHSIG = 1
_MAX_LAST_LINES = 12
_WARNING = re.compile(r"\S+ (WARNING|ERROR|CRITICAL) ")
_LEVELS = ("warning", "error", "critical")


@dataclass
class ChildProcess:
    """A command of this package in a child process."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    ready_line: re.Pattern[str]
    _reader: LogReader
    #: The line that the process printed when it was ready.
    ready: re.Match[str] | None = None
    _last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_LAST_LINES))

    @classmethod
    def start(
        cls, name: str, arguments: Sequence[str], logs: Path, environment: Mapping[str, str], ready_line: str
    ) -> ChildProcess:
        """Starts `proofgate ARGUMENTS`, which is ready when it prints `ready_line`. Raises OSError."""
        log = logs / f"{name}.log"
        with os.fdopen(open_log(log), "ab") as output:
            reader = LogReader(log)
            process = subprocess.Popen(  # noqa: S603 - this package, with arguments of its own
                # The current folder may have modules with the names of library modules.
                [sys.executable, "-P", "-m", "proofgate.local.logged_command", str(log), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment),
                # A terminal sends Ctrl-C to the whole process group, and a worker would count it as a second
                # signal.
                process_group=0,
                # This process has no threads that could hold a lock.
                preexec_fn=_die_with_parent(os.getpid()),
            )
        return cls(name, process, log, re.compile(ready_line), reader)

    def new_warnings(self) -> list[str]:
        """Reads the new lines of the log. Returns the lines that the user should see."""
        found = []
        for line in self._reader.lines():
            self._last_lines.append(line)
            self.ready = self.ready or self.ready_line.match(line)
            if _is_warning(line):
                found.append(line)
        return found

    def close_log(self) -> None:
        """Closes the log file of the process."""
        self._reader.close()

    def last_message(self) -> str:
        """The reason why the process ended, from its last lines."""
        lines = list(self._last_lines)
        begins = [at for at, line in enumerate(lines) if line.startswith("proofgate: ")]
        return "\n".join(lines[begins[-1] :] if begins else lines[-3:])

    @property
    def exit_description(self) -> str:
        """The exit code or signal of the process."""
        code = self.process.returncode
        if code is not None and code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


def _is_warning(line: str) -> bool:
    if line.startswith("{"):
        try:
            return json.loads(line).get("level") in _LEVELS
        except (ValueError, AttributeError):
            return False
    return _WARNING.match(line) is not None


def _die_with_parent(parent: int) -> Callable[[], None]:
    """Makes a child drain when its parent is killed. This works only on Linux, like the whole package."""
    libc = ctypes.CDLL(None)

    def run() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent:
            os._exit(1)

    return run
