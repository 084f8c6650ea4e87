"""The steps of a run: their requirements, the recording of their tests, and the repetition of some tests."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

ROOT = Path(__file__).resolve().parents[1]
Kind = Literal["build", "check", "tests"]
#: Maximum seconds of a step. A longer step is ended and counts as failed.
LIMIT = 3600.0
#: The Python of the environment that `make setup` makes, which may not exist yet.
PYTHON = os.environ.get("PROOFGATE_PYTHON", sys.executable)


class Action(Protocol):
    """The action that a step runs."""

    @property
    def folder(self) -> Path:
        """The folder in which it runs."""

    def command(self, record: Path, junit: Path) -> list[str]:
        """The command of the whole step. A suite of tests writes `record` (see `record.py`) and perhaps `junit`."""

    def again(self, tests: Sequence[str], record: Path) -> list[str] | None:
        """The command that runs these tests alone; None if the step has no tests to run again."""


@dataclass(frozen=True)
class Command:
    """A build or a check. It passes if it exits with 0, and its findings are never due to chance."""

    arguments: tuple[str, ...]
    folder: Path = ROOT

    def command(self, record: Path, junit: Path) -> list[str]:
        return list(self.arguments)

    def again(self, tests: Sequence[str], record: Path) -> list[str] | None:
        return None


@dataclass(frozen=True)
class Pytest:
    """A suite of pytest: paths and options, relative to its folder."""

    arguments: tuple[str, ...] = ()
    folder: Path = ROOT
    #: The number of processes, and how pytest-xdist distributes the tests among them.
    processes: int = 2
    spread: str = "loadfile"
    #: Options that a repetition needs as well, such as a selection of markers.
    options: tuple[str, ...] = ()
    #: Environment variables, each with a shell command that prints its value when run at the root.
    variables: tuple[tuple[str, str], ...] = ()

    def command(self, record: Path, junit: Path) -> list[str]:
        spread = ["-n", str(self.processes), "--dist", self.spread] if self.processes > 1 else []
        return [*self._pytest(record), f"--junitxml={junit}", *spread, *self.options, *self.arguments]

    def again(self, tests: Sequence[str], record: Path) -> list[str]:
        return [*self._pytest(record), *self.options, *tests]

    def _pytest(self, record: Path) -> list[str]:
        pytest = [PYTHON, "-m", "pytest", "-q", "-p", "suites.recorder", f"--record={record}"]
        if not self.variables:
            return pytest
        exports = "".join(
            f"{name}=$(cd {shlex.quote(str(ROOT))} && {command}); export {name}; " for name, command in self.variables
        )
        return ["bash", "-euo", "pipefail", "-c", f'{exports}exec "$@"', "bash", *pytest]


@dataclass(frozen=True)
class RustTests:
    """The test binaries of Rust packages; all of the workspace if none is named."""

    packages: tuple[str, ...] = ()
    folder: Path = ROOT

    def command(self, record: Path, junit: Path) -> list[str]:
        named = [f"--package={package}" for package in self.packages]
        return [PYTHON, "-m", "suites.rust", f"--record={record}", f"--junit={junit}", *named]

    def again(self, tests: Sequence[str], record: Path) -> list[str]:
        return [PYTHON, "-m", "suites.rust", f"--record={record}", *tests]


@dataclass(frozen=True)
class Step:
    """One part of a run."""

    name: str
    kind: Kind
    action: Action
    #: The steps that must have passed before this one starts.
    needs: tuple[str, ...] = ()
    #: The number of cores that the step keeps busy. Steps that fit on the cores together run in parallel.
    cores: float = 1.0
    environment: Mapping[str, str] = field(default_factory=dict)
    #: The clean-up command at the very end, after the repetitions; None if there is none.
    finally_: tuple[str, ...] | None = None
