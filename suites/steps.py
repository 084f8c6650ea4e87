"""What a run consists of: steps with what each needs, how its tests are recorded, and how some of them run again."""

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
#: A step that takes longer hangs: it is ended, and counts as failed. In seconds.
LIMIT = 3600.0
#: Of the environment that `make setup` makes; it need not be there yet.
PYTHON = os.environ.get("PROOFGATE_PYTHON", sys.executable)


class Action(Protocol):
    """What a step runs."""

    @property
    def folder(self) -> Path:
        """Where it runs."""

    def command(self, record: Path, junit: Path) -> list[str]:
        """The command of the whole step. A suite of tests writes `record` (see `record.py`) and perhaps `junit`."""

    def again(self, tests: Sequence[str], record: Path) -> list[str] | None:
        """The command that runs these tests alone; None if the step has no tests to run again."""


@dataclass(frozen=True)
class Command:
    """A build or a check: it has passed if it exits with 0, and what it finds is never chance."""

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
    #: How many processes run it, and how pytest-xdist spreads the tests over them.
    processes: int = 2
    spread: str = "loadfile"
    #: Options that a repetition needs as well, such as a selection of markers.
    options: tuple[str, ...] = ()
    #: Variables of its environment, each with the shell command, run at the root, that prints the value.
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
    #: The steps that have to have passed before it begins.
    needs: tuple[str, ...] = ()
    #: How many of the machine's cores it keeps busy; what has room on them runs side by side.
    cores: float = 1.0
    environment: Mapping[str, str] = field(default_factory=dict)
    #: What is undone at the very end, behind the repetitions; None if nothing is.
    finally_: tuple[str, ...] | None = None
