"""Runs steps in parallel, repeats failed tests once, and reports the results."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suites import record
from suites.record import Test
from suites.steps import LIMIT, ROOT, Step

#: Seconds between two progress messages of a run.
HEARTBEAT = 30.0
#: Maximum number of failures of a suite that are repeated. A suite with more has not failed by chance.
REPEATED = 25
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)
#: Number of output lines of a failed step that are shown.
SHOWN = 60


@dataclass
class Result:
    """The result of a step. `cpu` is the time of the step's processes, except those that it left running."""

    step: Step
    code: int | None = None
    seconds: float = 0.0
    cpu: float = 0.0
    tests: list[Test] = field(default_factory=list)
    #: Tests that failed, and passed when they ran again.
    flaky: list[str] = field(default_factory=list)
    #: Tests that failed both times, or once where nothing is repeated.
    failed: list[str] = field(default_factory=list)
    #: The reason why the step was not started.
    blocked_by: str = ""

    @property
    def passed(self) -> bool:
        return not self.failed and not self.blocked_by and self.code == 0


class Interrupted(Exception):
    """The run was ended by a signal."""


class Run:
    """One run: its folder has a log, a record and a JUnit report of each step."""

    def __init__(self, steps: Sequence[Step], folder: Path, cores: float | None = None) -> None:
        self.results = {step.name: Result(step) for step in steps}
        self._folder = folder
        self._cores = cores or float(os.cpu_count() or 1)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._began: dict[str, float] = {}
        self._undone: set[str] = set()
        #: The names of steps that have ended; None when the run is interrupted.
        self._ended: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._start = time.monotonic()
        for name in ("logs", "junit", "records"):
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir(parents=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def go(self) -> None:
        """Runs every step, repeats failed tests, and runs the final clean-up commands.

        Raises Interrupted on SIGINT or SIGTERM, when all that it started has ended.
        """
        # An exception during a start would leave an unknown process.
        previous = {one: signal.signal(one, lambda *_: self._ended.put(None)) for one in _INTERRUPTIONS}
        try:
            self._run_steps()
            self._repeat()
        except Interrupted:
            self._stop()
            raise
        finally:
            for name in self._began:
                self._undo(self.results[name].step)
            for one, handler in previous.items():
                signal.signal(one, handler)

    def _undo(self, step: Step) -> None:
        if step.finally_ and step.name not in self._undone:
            self._undone.add(step.name)
            self._say(step.name, f"undone by {' '.join(step.finally_)}")
            subprocess.run(step.finally_, cwd=ROOT, stdin=subprocess.DEVNULL, check=False, start_new_session=True)

    def _next(self, timeout: float) -> str:
        """The next step that ends. Raises queue.Empty and Interrupted."""
        name = self._ended.get(timeout=timeout)
        if name is None:
            raise Interrupted
        return name

    def _run_steps(self) -> None:
        waiting = [result.step for result in self.results.values()]
        while waiting or self._running:
            for step in list(waiting):
                blocked_by = next((name for name in self._needed(step) if self._is_lost(name)), "")
                if blocked_by:
                    self.results[step.name].blocked_by = blocked_by
                    self._say(step.name, f"not started: {blocked_by} failed")
                    waiting.remove(step)
                elif self._may_begin(step):
                    waiting.remove(step)
                    self._begin(step)
            try:
                self._end(self._next(HEARTBEAT if self._running else 0.01))
            except queue.Empty:
                self._heartbeat()

    def _needed(self, step: Step) -> list[str]:
        return [name for name in step.needs if name in self.results]

    def _is_lost(self, name: str) -> bool:
        """Whether a step that others need can no longer succeed: a build that failed or was not started."""
        result = self.results[name]
        return bool(result.blocked_by) or (result.step.kind == "build" and result.code not in (None, 0))

    def _may_begin(self, step: Step) -> bool:
        if any(self.results[name].code is None for name in self._needed(step)):
            return False
        busy = sum(self.results[name].step.cores for name in self._running)
        return not self._running or busy + step.cores <= self._cores

    def _begin(self, step: Step) -> None:
        command = step.action.command(self._record(step), self._folder / "junit" / f"{step.name}.xml")
        self._say(step.name, "begins")
        self._began[step.name] = time.monotonic()
        self._start_process(step, command, self._log(step))

    def _start_process(self, step: Step, command: Sequence[str], log: Path) -> None:
        process = start(command, step, log)
        self._running[step.name] = process
        threading.Thread(target=self._wait, args=(step.name, process), daemon=True).start()

    def _wait(self, name: str, process: subprocess.Popen[bytes]) -> None:
        timer = threading.Timer(LIMIT, kill, [process])
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        self.results[name].cpu += usage.ru_utime + usage.ru_stime
        self._ended.put(name)

    def _end(self, name: str) -> None:
        result = self.results[name]
        result.code = self._running.pop(name).returncode
        result.seconds = time.monotonic() - self._began[name]
        result.tests = record.read(self._record(result.step))
        result.failed = [test.name for test in result.tests if test.outcome == "failed"]
        if result.code and not result.failed:
            # The failure is not a test's fault, or the step was interrupted, so no test can be repeated.
            result.failed = [name]
        counts = f", {len(result.tests)} tests" if result.tests else ""
        outcome = "passed" if result.passed else f"FAILED ({len(result.failed)})"
        self._say(name, f"{outcome} in {clock(result.seconds)}{counts}")
        if result.passed:
            # No test of it is repeated, and processes that it left running would slow down the others.
            self._undo(result.step)

    def _heartbeat(self) -> None:
        for name in self._running:
            step = self.results[name].step
            since = clock(time.monotonic() - self._began[name])
            done = lines_of(self._record(step))
            at = f"{done} tests" if done else last_line(self._log(step))
            self._say(name, f"for {since}: {at}")

    def _repeat(self) -> None:
        """Runs the failed tests again, one suite after the other, with nothing else running."""
        for result in self.results.values():
            again = result.step.action.again(result.failed, self._record(result.step, "-again"))
            if (
                not result.failed
                or again is None
                or result.failed == [result.step.name]
                or len(result.failed) > REPEATED
            ):
                continue
            self._say(result.step.name, f"again, alone: {len(result.failed)} tests that failed")
            self._start_process(result.step, again, self._log(result.step, "-again"))
            self._running.pop(self._next(2 * LIMIT))
            outcomes = {test.name: test.outcome for test in record.read(self._record(result.step, "-again"))}
            result.flaky = [name for name in result.failed if passed_again(name, outcomes)]
            result.failed = [name for name in result.failed if name not in result.flaky]
            result.code = 1 if result.failed else 0

    def _stop(self) -> None:
        for process in self._running.values():
            kill(process, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while self._running and time.monotonic() < deadline:
            try:
                self._running.pop(self._ended.get(timeout=1) or "", None)
            except queue.Empty:
                continue
        for process in self._running.values():
            kill(process)

    def _record(self, step: Step, suffix: str = "") -> Path:
        return self._folder / "records" / f"{step.name}{suffix}.jsonl"

    def _log(self, step: Step, suffix: str = "") -> Path:
        return self._folder / "logs" / f"{step.name}{suffix}.log"

    def _say(self, name: str, text: str) -> None:
        print(f"[{clock(self.seconds):>6}] {name}: {text}", flush=True)

    def show_failures(self) -> None:
        """Prints the end of the output of each failed step."""
        for name, result in self.results.items():
            if result.passed or result.blocked_by:
                continue
            again = self._log(result.step, "-again")
            log = again if again.exists() else self._log(result.step)
            print(f"\n== {name} failed; the end of {log}:")
            print("\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN:]))


def passed_again(name: str, outcomes: Mapping[str, str]) -> bool:
    """Whether a test passed when it ran again: itself, or all tests of a file that could not be read."""
    if name in outcomes:
        return outcomes[name] == "passed"
    inside = [outcome for test, outcome in outcomes.items() if test.startswith(f"{name}::")]
    return bool(inside) and all(outcome == "passed" for outcome in inside)


def start(command: Sequence[str], step: Step, log: Path) -> subprocess.Popen[bytes]:
    """Starts a step's command as the leader of a new process group, with its output in a file."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONPATH": path, **step.environment}
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=step.action.folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip


def kill(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGKILL) -> None:
    """Ends a step and all processes that it started."""
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        return


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def lines_of(path: Path) -> int:
    """The number of lines of a file; 0 if it does not exist."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def last_line(path: Path) -> str:
    """The last non-empty line that a step printed, shortened."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:100] if lines else "nothing printed yet"
