"""Starts child processes, waits until they are ready, and stops all of them when one ends or a signal
arrives."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from proofgate.local.child import ChildProcess

#: Seconds between two reads of the children's logs. Signals and ended children are noticed immediately.
_POLL_SECONDS = 0.2
_READY_SECONDS = 120.0
#: Number of signals after which all processes are killed immediately.
_KILL_AFTER_SIGNALS = 3
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequestedError(Exception):
    """A signal requested a stop."""


class ChildEndedError(Exception):
    """A child process ended unexpectedly, or did not become ready. The message contains its output."""


class Supervisor:
    """The child processes of this process, in the order of their start."""

    def __init__(self, logs: Path, environment: dict[str, str], warn: Callable[[str], None]) -> None:
        """`warn` shows warnings of a child."""
        self._logs, self._environment, self._warn = logs, environment, warn
        self._children: list[ChildProcess] = []
        #: Child processes that are allowed to end.
        self._passing: list[ChildProcess] = []
        self._signals = 0
        self._read_end, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Within the block, SIGINT, SIGTERM and SIGHUP request a stop."""

        def stop(_: int, __: FrameType | None) -> None:
            self._signals += 1

        before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
        # Without a handler, the signal's number would not be written to the wake-up descriptor.
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _, __: None)
        signal.set_wakeup_fd(self._write_end)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(
        self, name: str, arguments: Sequence[str], ready_line: str = "", *, passing: bool = False
    ) -> ChildProcess:
        """Starts a child. A `passing` child may end by itself. Raises OSError."""
        child = ChildProcess.start(name, arguments, self._logs, self._environment, ready_line or r"(?!)")
        self._children.append(child)
        if passing:
            self._passing.append(child)
        return child

    def wait_ready(self, *children: ChildProcess) -> None:
        """Waits until all children are ready. Raises StopRequestedError and ChildEndedError."""
        deadline = time.monotonic() + _READY_SECONDS
        while not all(child.ready for child in children):
            self.poll()
            if time.monotonic() > deadline:
                late = next(child for child in children if not child.ready)
                raise ChildEndedError(
                    f"the {late.name} was not ready within {_READY_SECONDS:.0f} s: see {late.log}"
                )

    def poll(self) -> None:
        """Waits for a short time. Raises StopRequestedError after a signal, and ChildEndedError if a child
        has ended."""
        select.select([self._read_end], [], [], _POLL_SECONDS)
        self._drain_pipe()
        if self._signals:
            raise StopRequestedError
        for child in list(self._children):
            ended = child.process.poll() is not None
            self._show(child)
            if ended and child in self._passing:
                self._passing.remove(child)
                self._remove(child)
                self.report_exit(child)
            elif ended:
                self._remove(child)
                raise ChildEndedError(
                    f"the {child.name} {child.exit_description}; its log is in {child.log}"
                    f"\n{child.last_message()}"
                )

    def report_exit(self, child: ChildProcess) -> None:
        """Reports the end of a child that may end, with its last lines."""
        self._warn(child.last_message())

    def stop(self, child: ChildProcess) -> int | None:
        """Stops a child and waits for it. Returns its exit code; None if it had already ended.

        A second signal to this process is passed on to the child, and a third one kills it.
        """
        if child not in self._children:
            return None
        child.process.terminate()
        seen = self._signals
        while child.process.poll() is None:
            select.select([self._read_end], [], [], _POLL_SECONDS)
            self._drain_pipe()
            self._show(child)
            if self._signals > seen:
                seen = self._signals
                child.process.send_signal(signal.SIGKILL if seen >= _KILL_AFTER_SIGNALS else signal.SIGTERM)
        self._show(child)
        self._remove(child)
        return child.process.returncode

    def stop_all(self) -> None:
        """Stops the remaining children, newest first."""
        for child in reversed(list(self._children)):
            self.stop(child)

    def close(self) -> None:
        """Closes all open files."""
        os.close(self._read_end)
        os.close(self._write_end)

    def _remove(self, child: ChildProcess) -> None:
        self._children.remove(child)
        child.close_log()

    def _show(self, child: ChildProcess) -> None:
        for line in child.new_warnings():
            self._warn(f"{child.name}: {line}")

    def _drain_pipe(self) -> None:
        try:
            while os.read(self._read_end, 512):
                pass
        except BlockingIOError:
            pass


def warn(text: str) -> None:
    """Shows a line on the terminal."""
    print(text, file=sys.stderr, flush=True)
