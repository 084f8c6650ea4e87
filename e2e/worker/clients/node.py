"""The official Node clients, each a process that reads requests from its standard input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from e2e.programs import Program, start_ready
from e2e.worker.clients.asked import LOOK, SCHEMA, Ask, Failed, Told

HERE = Path(__file__).parent
#: The variable with the folder in which `make test-clients` has installed the packages of the lock file.
PACKAGES = "PROOFGATE_NODE_CLIENTS"


class NodeClient:
    """One of these clients."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def ask(self, ask: Ask) -> Told | Failed:
        """Sends a request and returns its result.

        Raises NotReadyError if the client does not answer.
        """
        result: dict[str, Any] = json.loads(self._program.ask(json.dumps(asdict(ask))))
        if "failed" in result:
            return Failed(**result["failed"])
        told = result["told"]
        calls = [(name, given) for name, given in told.get("calls", [])]
        usage = told.get("usage")
        counted = (usage[0], usage[1]) if usage else None
        return Told(told.get("text", ""), calls, told.get("finish"), counted)


@contextmanager
def node_client(script: str, folder: Path, base_url: str, key: str, **settings: Any) -> Iterator[NodeClient]:
    """Starts a client of this folder."""
    packages = os.environ.get(PACKAGES)
    if packages is None:
        raise RuntimeError(f"{PACKAGES} names no folder: run make test-clients")
    # A Node script finds packages only beside itself, and the checkout has none.
    work = folder / f"{script}-{len(settings)}"
    work.mkdir()
    for file in HERE.glob("*.mjs"):
        shutil.copy(file, work)
    (work / "node_modules").symlink_to(Path(packages) / "node_modules")
    given = {"base_url": base_url, "key": key, "look": LOOK, "schema": SCHEMA, **settings}
    arguments = [f"{script}.mjs", json.dumps(given)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    program, _ = start_ready(
        lambda: Program.start(script, work, arguments, ["node"], cwd=work, **pipes),
        lambda program: program.wait_for_line("ready"),
    )
    try:
        yield NodeClient(program)
    finally:
        program.stop()
