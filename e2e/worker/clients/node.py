"""The official Node clients, each a process that takes requests on its standard input."""

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

from e2e.worker.clients.asked import LOOK, SCHEMA, Ask, Failed, Told

HERE = Path(__file__).parent
#: Where `make test-clients` has installed the packages of the lock file.
PACKAGES = "PROOFGATE_NODE_CLIENTS"


class NodeClient:
    """One of them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, ask: Ask) -> Told | Failed:
        """Sends a request by it and reads what came of it.

        Raises RuntimeError when the process has ended, which writes why to standard error.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(ask)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the client ended with {self._process.wait()}")
        result: dict[str, Any] = json.loads(line)
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
    # A script finds its packages beside itself, and the checkout has none.
    work = folder / f"{script}-{len(settings)}"
    work.mkdir()
    for file in HERE.glob("*.mjs"):
        shutil.copy(file, work)
    (work / "node_modules").symlink_to(Path(packages) / "node_modules")
    given = {"base_url": base_url, "key": key, "look": LOOK, "schema": SCHEMA, **settings}
    command = ["node", f"{script}.mjs", json.dumps(given)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=work, **pipes) as process:
        try:
            yield NodeClient(process)
        finally:
            process.terminate()
