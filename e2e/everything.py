"""`proofgate quickstart --start` as a process on free ports, and its output."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from e2e.programs import PATIENCE, Program

#: The environment without keys that a developer may have exported, which tests must not use.
NO_KEYS = {name: value for name, value in os.environ.items() if name not in {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}}
_ANY_PORT = "127.0.0.1:0"


@dataclass
class Everything:
    """A running quickstart: its folder, its process, and the addresses of its parts."""

    folder: Path
    program: Program
    told: str
    running: dict[str, Any]

    @property
    def gateway(self) -> str:
        return f"http://{self.running['gateway']}"

    @property
    def explorer(self) -> str:
        return f"http://{self.running['explorer']}"

    @property
    def token(self) -> str:
        """The single-use sign-in token of the printed link."""
        return token_of(self.told)

    def child(self, name: str) -> int:
        """The process of a child, by the last part of its command."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                status, command = (process / "status").read_text(), (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"PPid:\t{self.program.process.pid}\n" in status and name.encode() in command:
                return int(process.name)
        raise LookupError(name)

    def sign_in(self, client: httpx.Client, token: str | None = None) -> httpx.Response:
        """Signs in with a token, as the page does with a link."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return client.post(f"{self.explorer}/v1/sign-in/once", headers=headers, timeout=PATIENCE)


def token_of(told: str) -> str:
    """The token of a link in a text."""
    found = re.search(r"http://\S+/#/sign-in/(\S+)", told)
    assert found, told
    return found[1]


def start(
    folder: Path,
    *more: str,
    environment: Mapping[str, str] = NO_KEYS,
    logs: Path | None = None,
) -> Program:
    """Starts a quickstart in a new or existing folder. Addresses in `more` replace the free ports."""
    arguments = ["quickstart", "--start", "--directory", str(folder), "--explorer-listen", _ANY_PORT]
    if not folder.exists():
        arguments += ["--listen", _ANY_PORT, "--admin-listen", _ANY_PORT]
    arguments += more
    return Program.start("quickstart", logs or folder.parent, arguments, env=dict(environment), process_group=0)


@contextmanager
def everything(
    folder: Path, *more: str, environment: Mapping[str, str] = NO_KEYS, logs: Path | None = None
) -> Iterator[Everything]:
    """A quickstart that is completely ready. Its remaining processes are ended after the block."""
    program = start(folder, *more, environment=environment, logs=logs)
    try:
        program.wait_for_line("Ctrl-C drains and seals")
        running = json.loads((folder / "running.json").read_text())
        yield Everything(folder, program, program.printed, running)
    finally:
        if program.process.poll() is None:
            program.stop()


def stop(program: Program, how: signal.Signals = signal.SIGINT) -> int:
    """Ends a program as a terminal does."""
    return program.stop(how)
