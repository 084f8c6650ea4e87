"""A worker and a stand-in upstream as real processes on loopback, without Kubernetes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from proofgate import _core

from e2e.evidence import records

LEDGER = "proofgate.dev/local/demo"
KEYS = {"acme": "acme-demo-key-0123456789abcdef", "globex": "globex-demo-key-0123456789abcdef"}
MODEL = "gpt-4o-mini"
_DAY = 86_400
#: What a worker prints when it serves: traffic, admin, origin, verifying key.
READY = r"proofgate ready: traffic=(\S+) admin=(\S+) origin=(\S+) verifying-key=(\S+)"


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Polls until `condition` holds.

    Raises TimeoutError, saying what was waited for.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s in vain until {what}")
        time.sleep(0.02)


def not_over_midnight(seconds: float) -> None:
    """Waits for the next day of UTC unless this one lasts so long: what is used of a budget is told by the day."""
    wait_until(lambda: _DAY - time.time() % _DAY >= seconds, seconds + 1, "it is the next day")


@dataclass
class Program:
    """One process and what it has printed."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    #: How much an earlier program of that name had left in the log, in bytes.
    before: int = 0

    @classmethod
    def start(cls, name: str, folder: Path, arguments: list[str], **options: Any) -> Program:
        """Starts `proofgate ARGUMENTS`; its output goes to a file in `folder`."""
        log = folder / f"{name}.log"
        with log.open("ab") as output:
            before = output.tell()
            command = [*options.pop("prefix", []), sys.executable, "-m", "proofgate", *arguments]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options)
        return cls(name, process, log, before)

    def wait_for_line(self, pattern: str, seconds: float = 30) -> re.Match[str]:
        """Waits until the program has printed `pattern`."""
        found: list[re.Match[str]] = []

        def printed() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.log.read_text()}")
            match = re.search(pattern, self.log.read_bytes()[self.before :].decode())
            found.extend([match] if match else [])
            return bool(found)

        wait_until(printed, seconds, f"{self.name} prints {pattern!r}")
        return found[0]

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 60) -> int:
        """Ends the program and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(seconds)


@dataclass
class LocalGateway:
    """A worker in front of a stand-in upstream, with everything it needs in one folder."""

    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    upstream_arguments: list[str] = field(default_factory=list)
    worker_prefix: list[str] = field(default_factory=list)
    listen: str = "127.0.0.1:0"
    admin_listen: str = "127.0.0.1:0"
    upstream_listen: str = "127.0.0.1:0"
    admin_token: str = "local-admin-token-0123456789abcdef"
    upstream: Program | None = None
    worker: Program | None = None
    upstream_url: str = ""
    address: str = ""
    admin: str = ""
    origin: str = ""
    verifying_key: str = ""

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def base_url(self) -> str:
        return f"http://{self.address}/v1"

    def start(self) -> None:
        """Starts the upstream, then the worker, and waits until both serve."""
        self.start_upstream()
        self.write_configuration()
        self.start_worker()

    def start_upstream(self) -> None:
        arguments = ["mock-upstream", "--listen", self.upstream_listen, *self.upstream_arguments]
        self.upstream = Program.start("mock-upstream", self.folder, arguments)
        self.upstream_url = self.upstream.wait_for_line(r"mock-upstream ready: (\S+)")[1]

    def write_configuration(self) -> None:
        """Writes the worker's configuration and, the first time, its signing key."""
        signing_key = self.folder / "signing-key"
        if not signing_key.exists():
            secret, _ = _core.generate_key(LEDGER)
            signing_key.touch(mode=0o600)
            signing_key.write_text(secret + "\n")
        (self.folder / "admin-token").write_text(self.admin_token)
        self.ledger.mkdir(exist_ok=True)
        document: dict[str, Any] = {
            "ledger": {"name": LEDGER, "directory": str(self.ledger), "signingKeyFile": str(signing_key)},
            "listen": self.listen,
            "admin": {"listen": self.admin_listen, "tokenFile": str(self.folder / "admin-token")},
            "providers": [{"name": "mock", "type": "OpenAI", "baseURL": self.upstream_url}],
            "models": [{"name": MODEL, "provider": "mock"}],
            "tenants": [{"name": tenant, "keyHashes": [_core.hash_api_key(key)]} for tenant, key in KEYS.items()],
            "timeouts": {"lameDuckSeconds": 0, "drainSeconds": 10},
        }
        for section, values in self.settings.items():
            document[section] = {**document.get(section, {}), **values} if isinstance(values, dict) else values
        (self.folder / "gateway.yaml").write_text(yaml.safe_dump(document))

    def start_worker(self, environment: Mapping[str, str] | None = None, shard: int = 0) -> None:
        arguments = ["serve", "--config", str(self.folder / "gateway.yaml"), "--shard", str(shard)]
        self.worker = Program.start(
            "worker", self.folder, arguments, prefix=self.worker_prefix, env={**os.environ, **(environment or {})}
        )
        match = self.worker.wait_for_line(READY)
        self.address, self.admin, self.origin, self.verifying_key = match.groups()

    def admin_text(self, path: str, method: str = "GET", token: str | None = None) -> str:
        """One call of the admin port; raises HTTPError on a status of 400 and above."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://{self.admin}{path}", method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=15) as response:
            body: bytes = response.read()
        return body.decode()

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.admin_text("/status"))
        return status

    def upstream_stats(self, url: str | None = None) -> dict[str, Any]:
        """What the stand-in upstream counts, or the one that has another URL."""
        base = (url or self.upstream_url).removesuffix("/v1")
        with urllib.request.urlopen(f"{base}/mock/stats", timeout=10) as response:
            stats: dict[str, Any] = json.load(response)
        return stats

    def records(self) -> list[dict[str, Any]]:
        """Every record of every incarnation, oldest first, each with its incarnation under `log`."""
        return records(self.ledger)

    def stop(self) -> None:
        for program in (self.worker, self.upstream):
            if program is not None and program.process.poll() is None:
                program.stop(signal.SIGKILL)


@contextmanager
def local_gateway(folder: Path, **options: Any) -> Iterator[LocalGateway]:
    """A running gateway that is ended on the way out."""
    folder.mkdir(exist_ok=True)
    gateway = LocalGateway(folder, **options)
    try:
        gateway.start()
        yield gateway
    finally:
        gateway.stop()
