"""Programs that a test starts and waits for. Their output is kept, and reported if one does not become ready."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

#: Maximum seconds of a wait, more than ten times the usual duration; a longer wait is a failure.
PATIENCE = 300
PROOFGATE = (sys.executable, "-m", "proofgate")
T = TypeVar("T")


class NotReadyError(RuntimeError):
    """A program ended or timed out before it was ready. The text says how it ended and what it printed."""


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Polls until `condition` is true.

    Raises TimeoutError with the awaited condition.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s in vain until {what}")
        time.sleep(0.02)


@dataclass
class Program:
    """One process and its output."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    #: Bytes in the log from earlier programs with the same name.
    before: int = 0

    @classmethod
    def start(
        cls, name: str, folder: Path, arguments: Sequence[str], executable: Sequence[str] = PROOFGATE, **options: Any
    ) -> Program:
        """Starts `proofgate ARGUMENTS`, or another executable; its output goes to a file in `folder`.

        `options` are those of `subprocess.Popen`: a standard stream that is a pipe is not in the file.
        """
        log = folder / f"{name}.log"
        with log.open("ab") as output:
            before = output.tell()
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            process = subprocess.Popen([*executable, *arguments], **(streams | options))
        return cls(name, process, log, before)

    @property
    def printed(self) -> str:
        """Its output so far."""
        return self.log.read_bytes()[self.before :].decode(errors="replace")

    @property
    def report(self) -> str:
        """Its exit status, if it has ended, and its output."""
        code = self.process.poll()
        if code is None:
            ending = "still runs"
        elif code < 0:
            ending = f"was ended by {signal.Signals(-code).name}"
        else:
            ending = f"ended with exit code {code}"
        return f"{self.name} {ending}; it printed:\n{self.printed or '(nothing)'}"

    def wait_until(self, condition: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
        """Waits until `condition` returns a true value, and returns this value.

        Raises NotReadyError if the program ends earlier, or after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while True:
            # The condition is checked again after the end, because the program may have met it just before.
            has_ended = self.process.poll() is not None
            found = condition()
            if found:
                return found
            if has_ended:
                raise NotReadyError(f"waited until {what}: {self.report}")
            if time.monotonic() > deadline:
                raise NotReadyError(f"waited {seconds} s in vain until {what}: {self.report}")
            time.sleep(0.02)

    def wait_for_line(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """Waits until the program has printed `pattern`. Raises NotReadyError."""
        return self.wait_until(lambda: re.search(pattern, self.printed), f"it prints {pattern!r}", seconds)

    def ask(self, line: str, seconds: float = PATIENCE) -> str:
        """Writes a line to a program whose standard streams are pipes, and returns the line that the program answers.

        Raises NotReadyError if there is no answer.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise NotReadyError(f"it takes no request: {self._last_report()}") from None
        answer, descriptor, deadline = b"", self.process.stdout.fileno(), time.monotonic() + seconds
        while not answer.endswith(b"\n"):
            if not select.select([descriptor], [], [], max(0, deadline - time.monotonic()))[0]:
                raise NotReadyError(f"waited {seconds} s in vain for an answer: {self.report}")
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                raise NotReadyError(f"it does not answer: {self._last_report()}")
            answer += piece
        return answer.decode()

    def _last_report(self) -> str:
        """The report of a program that closed its pipes, and so is about to end."""
        self.process.wait(PATIENCE)
        return self.report

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = PATIENCE) -> int:
        """Ends the program; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(seconds)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # Input that the program did not read is lost.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        return code


def start_ready(start: Callable[[], Program], wait: Callable[[Program], T], attempts: int = 2) -> tuple[Program, T]:
    """A ready program, and the result of `wait`.

    A program that does not become ready is ended and started again, once. Raises NotReadyError, with the reports of all
    attempts.
    """
    reports: list[str] = []
    for number in range(1, attempts + 1):
        program = start()
        try:
            found = wait(program)
        except NotReadyError as error:
            program.stop(signal.SIGKILL)
            reports.append(f"attempt {number} of {attempts}: {error}")
            print(reports[-1], file=sys.stderr)
        except BaseException:
            program.stop(signal.SIGKILL)
            raise
        else:
            return program, found
    raise NotReadyError("\n".join(reports))
