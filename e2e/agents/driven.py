"""A library in a process that reads requests line by line, and the outcomes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.agents.gateway import Bench
from e2e.agents.stand_ins.server import Providers
from e2e.programs import Program
from suites.steps import ROOT

DRIVERS = Path(__file__).parent / "drivers"
#: A library makes twenty turns in a few seconds. A command also starts a large program, on a busy machine.
PATIENCE = 300


@dataclass(frozen=True)
class Outcome:
    """The outcome of a client's request: a text, or the reason why there is none."""

    text: str = ""
    failed: str = ""
    not_offered: bool = False


class Driver:
    """A library in a process that is started at the first request."""

    def __init__(self, start: Callable[[], Program], providers: Providers) -> None:
        self._start, self._providers = start, providers
        self._program: Program | None = None

    def ask(self, does: str, prompt: str) -> Outcome:
        """Sends a request. Raises NotReadyError with the library's output if it does not answer."""
        if self._program is None:
            self._program = self._start()
        if does == "interrupt":
            return self._interrupt(self._program, prompt)
        answer: dict[str, Any] = json.loads(self._program.ask(json.dumps({"does": does, "prompt": prompt}), PATIENCE))
        if "failed" in answer:
            failed = answer["failed"]
            return Outcome(failed=f"{failed['kind']} {failed['status']}: {failed['message']}")
        return Outcome(answer.get("text", ""), not_offered="not_offered" in answer)

    def _interrupt(self, program: Program, prompt: str) -> Outcome:
        """Ends the process in the middle of a turn; the next request starts a new process."""
        assert program.process.stdin is not None
        program.process.stdin.write((json.dumps({"does": "turn", "prompt": prompt}) + "\n").encode())
        program.process.stdin.flush()
        program.wait_until(self._providers.holding.is_set, "the provider has said a half", PATIENCE)
        self.stop()
        return Outcome("interrupted")

    def stop(self) -> None:
        """Ends the process, if there is one."""
        if self._program is not None:
            self._program.stop(signal.SIGKILL)
            self._program = None


def python_of(environment: str) -> Path:
    """The Python interpreter of an environment that a lock file of this folder defines."""
    return Path(os.environ[f"PROOFGATE_AGENTS_{environment.upper()}"]) / "bin" / "python"


def node_modules() -> Path:
    """The folder where `make test-agents` installs the coding agents that are Node packages."""
    return Path(os.environ["PROOFGATE_AGENTS"]) / "node_modules"


def sdk_modules() -> Path:
    """The folder of the AI SDK."""
    return Path(os.environ["PROOFGATE_AGENTS_SDK"]) / "node_modules"


@contextmanager
def driver(bench: Bench, script: str, environment: str, api: str, model: str) -> Iterator[Driver]:
    """Starts a driver of this folder: with Node if it is a Node script, otherwise in the named Python environment."""
    variables = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    variables |= bench.no_way_out | {"HOME": str(bench.folder), "PYTHONPATH": str(ROOT), "AI_SDK_LOG_WARNINGS": "false"}
    variables |= {"LANGSMITH_TRACING": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    given = {"BASE_URL": bench.base_url, "KEY": bench.key, "MODEL": model, "API": api}
    variables |= {f"PROOFGATE_{name}": value for name, value in given.items()}
    if script.endswith(".mjs"):
        # A Node script finds packages only beside itself, and the checkout has none.
        work = bench.folder / "scripts"
        work.mkdir(exist_ok=True)
        shutil.copy(DRIVERS / script, work)
        if not (work / "node_modules").exists():
            (work / "node_modules").symlink_to(sdk_modules())
        command = ["node", str(work / script)]
    else:
        command = [str(python_of(environment)), "-m", f"e2e.agents.drivers.{script}"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    found = Driver(
        lambda: Program.start(f"{script}-{api}", bench.folder, [], command, cwd=bench.project, env=variables, **pipes),
        bench.providers,
    )
    try:
        yield found
    finally:
        found.stop()
