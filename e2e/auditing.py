"""An audited ledger: requests to its worker, and the auditor as a command and as a service."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway
from e2e.programs import PATIENCE, Program, start_ready, wait_until

AUDITOR = "proofgate.dev/local/audit"


def ask(gateway: LocalGateway, times: int) -> None:
    headers = {"Authorization": f"Bearer {KEYS['acme']}"}
    with httpx.Client(base_url=gateway.base_url, headers=headers, timeout=PATIENCE) as client:
        for _ in range(times):
            body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
            client.post("/chat/completions", json=body).raise_for_status()


def signed(gateway: LocalGateway) -> int:
    """The number of records under the newest checkpoint of the current log."""
    return int(gateway.admin_text("/checkpoint").split("\n")[1])


def ask_and_wait(gateway: LocalGateway, times: int) -> None:
    """Sends requests, and waits until a checkpoint covers their records."""
    wanted = signed(gateway) + 2 * times
    ask(gateway, times)
    wait_until(lambda: signed(gateway) >= wanted, PATIENCE, "the records are under a checkpoint")


@dataclass(frozen=True)
class Audit:
    """A ledger and the state of an auditor that has checked it."""

    folder: Path
    key: str

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def arguments(self) -> list[str]:
        keys = ["--signing-key", str(self.folder / "auditor-key"), "--ledger-key", self.key]
        paths = ["--ledger", str(self.ledger), "--state", str(self.state)]
        return ["audit", "run", *paths, *keys, *self.keeping, "--second-look", "0.1"]

    @property
    def keeping(self) -> list[str]:
        """The retention key of the ledger, if it has one."""
        key = self.folder / "keeping-key"
        return ["--keeping-key", str(key)] if key.exists() else []

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs an auditor command; returns its exit code and output."""
        return proofgate(*arguments)

    def look(self, *more: str) -> tuple[int, list[dict[str, Any]]]:
        """Runs one check; returns the exit code and the findings."""
        done = self.run(*self.arguments, "--once", "--json", *more)
        assert done.stdout, done.stderr
        report = json.loads(done.stdout)
        assert report["exit_code"] == done.returncode
        return done.returncode, report["findings"]

    def logs(self) -> list[Path]:
        """The logs of shard 0, the oldest first."""
        return sorted(path for path in (self.ledger / "0").iterdir() if path.is_dir())

    def copy(self, to: Path) -> Audit:
        shutil.copytree(self.folder, to)
        return replace(self, folder=to)


@contextmanager
def following(audit: Audit, *more: str, environment: Mapping[str, str] | None = None) -> Iterator[tuple[Program, str]]:
    """The auditor as a service, and its URL. `environment` is added to this process's own."""
    arguments = [*audit.arguments, "--listen", "127.0.0.1:0", "--beat", "0.2", *more]
    variables = {**os.environ, **(environment or {})}
    program, ready = start_ready(
        lambda: Program.start("auditor", audit.folder, arguments, env=variables),
        lambda program: program.wait_for_line(r"proofgate auditor: (http://\S+)"),
    )
    try:
        yield program, ready[1]
    finally:
        program.stop(signal.SIGKILL)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        body: bytes = answer.read()
    return body.decode()


def heads(url: str) -> dict[str, int]:
    """Records by log, of the newest log of each shard."""
    return {head["origin"]: head["size"] for head in json.loads(fetch(f"{url}/heads"))["shards"]}
