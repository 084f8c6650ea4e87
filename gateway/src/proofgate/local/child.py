"""A child process: its log is a file, of which the parent reads when it is ready and what to warn of."""

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
    """A command of this package as a process of its own."""

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
                # The present folder may have modules of the same names as the library's.
                [sys.executable, "-P", "-m", "proofgate.local.logged_command", str(log), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment),
                # A terminal sends Ctrl-C to its whole group, and a worker takes two signals for haste.
                process_group=0,
                # There are no threads here that could hold a lock.
                preexec_fn=_die_with_parent(os.getpid()),
            )
        return cls(name, process, log, re.compile(ready_line), reader)

    def new_warnings(self) -> list[str]:
        """Reads what it has printed since the last call; the lines that somebody should see."""
        found = []
        for line in self._reader.lines():
            self._last_lines.append(line)
            self.ready = self.ready or self.ready_line.match(line)
            if _is_warning(line):
                found.append(line)
        return found

    def close(self) -> None:
        """Closes its log, of which nothing more is read."""
        self._reader.close()

    def last_message(self) -> str:
        """Why it ended, as far as its last lines say it."""
        lines = list(self._last_lines)
        begins = [at for at, line in enumerate(lines) if line.startswith("proofgate: ")]
        return "\n".join(lines[begins[-1] :] if begins else lines[-3:])

    @property
    def exit_description(self) -> str:
        """Its exit code or signal."""
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
    """Makes a child drain when its parent is killed. Of Linux, as all of this package."""
    libc = ctypes.CDLL(None)

    def run() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent:
            os._exit(1)

    return run
