"""A worker and a stand-in upstream as real processes on loopback, without Kubernetes."""

from __future__ import annotations

import atexit
import json
import os
import signal
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from proofgate import _core

from e2e.evidence import records
from e2e.programs import PATIENCE, PROOFGATE, start_ready
from e2e.programs import Program as Program
from e2e.programs import wait_until as wait_until

LEDGER = "proofgate.dev/local/demo"
KEYS = {"acme": "acme-demo-key-0123456789abcdef", "globex": "globex-demo-key-0123456789abcdef"}
MODEL = "gpt-4o-mini"
_DAY = 86_400
#: The line that a ready worker prints: traffic, admin, origin, verifying key.
READY = r"proofgate ready: traffic=(\S+) admin=(\S+) origin=(\S+) verifying-key=(\S+)"


def not_over_midnight(seconds: float) -> None:
    """Waits for the next day of UTC unless at least `seconds` of this day are left, because budgets count by day."""
    wait_until(lambda: _DAY - time.time() % _DAY >= seconds, seconds + 1, "it is the next day")


def _start_upstream(folder: Path, listen: str, *arguments: str) -> tuple[Program, str]:
    """Starts a stand-in upstream; returns it and its URL."""
    program, ready = start_ready(
        lambda: Program.start("mock-upstream", folder, ["gateway", "mock-upstream", "--listen", listen, *arguments]),
        lambda program: program.wait_for_line(r"mock-upstream ready: (\S+)"),
    )
    return program, ready[1]


class _CommonUpstream:
    """A stand-in upstream that is started at its first use, and runs until it is stopped."""

    def __init__(self) -> None:
        self._started: tuple[Program, str, tempfile.TemporaryDirectory[str]] | None = None

    def url(self) -> str:
        if self._started is None or self._started[0].process.poll() is not None:
            folder = tempfile.TemporaryDirectory(prefix="proofgate-upstream-")
            self._started = (*_start_upstream(Path(folder.name), "127.0.0.1:0"), folder)
        return self._started[1]

    def stop(self) -> None:
        if self._started is not None:
            program, _, folder = self._started
            program.stop(signal.SIGKILL)
            folder.cleanup()
            self._started = None


COMMON_UPSTREAM = _CommonUpstream()
# Processes of pytest-xdist do not call functions registered with atexit, so the tests' conftest.py also stops it.
atexit.register(COMMON_UPSTREAM.stop)
#: The counters of the stand-in by the end of each request.
_ENDS = ("completed", "failed", "unauthorized", "client_disconnects")


def _counted(url: str) -> dict[str, int]:
    """The counters of a stand-in upstream."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/mock/stats", timeout=PATIENCE) as response:
        stats = json.load(response)
    return {name: stats[name] for name in ("started", *_ENDS)}


def _is_idle(url: str) -> bool:
    """Whether a stand-in upstream has no request in flight."""
    stats = _counted(url)
    return stats["started"] == sum(stats[name] for name in _ENDS)


@dataclass
class LocalGateway:
    """A worker in front of a stand-in upstream, with all its files in one folder."""

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
    _counted_before: dict[str, int] = field(default_factory=dict)

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
        """Starts a stand-in upstream. Without special settings, all gateways of this process share one."""
        if self.upstream_arguments or self.upstream_listen != "127.0.0.1:0":
            self.upstream, self.upstream_url = _start_upstream(
                self.folder, self.upstream_listen, *self.upstream_arguments
            )
        else:
            self.upstream_url = COMMON_UPSTREAM.url()
            self._counted_before = _counted(self.upstream_url)

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

    def start_worker(self, environment: Mapping[str, str] | None = None, shard: int = 0, attempts: int = 2) -> None:
        """Starts a worker and waits until it serves. Raises NotReadyError, after one attempt if its start is tested."""
        arguments = ["serve", "--config", str(self.folder / "gateway.yaml"), "--shard", str(shard)]
        executable, variables = [*self.worker_prefix, *PROOFGATE], {**os.environ, **(environment or {})}
        self.worker, ready = start_ready(
            lambda: Program.start("worker", self.folder, arguments, executable, env=variables),
            lambda program: program.wait_for_line(READY),
            attempts,
        )
        self.address, self.admin, self.origin, self.verifying_key = ready.groups()

    def admin_text(self, path: str, method: str = "GET", token: str | None = None) -> str:
        """Sends one request to the admin port; raises HTTPError for a status of 400 and above."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://{self.admin}{path}", method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            body: bytes = response.read()
        return body.decode()

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.admin_text("/status"))
        return status

    def upstream_stats(self, url: str | None = None) -> dict[str, int]:
        """The counts of the stand-in upstream since this gateway's start, or of the one with another URL."""
        before = self._counted_before if url in (None, self.upstream_url) else {}
        stats = _counted(url or self.upstream_url)
        return {name: count - before.get(name, 0) for name, count in stats.items()}

    def records(self) -> list[dict[str, Any]]:
        """All records of all incarnations, oldest first, each with its incarnation under `log`."""
        return records(self.ledger)

    def stop(self) -> None:
        for program in (self.worker, self.upstream):
            if program is not None and program.process.poll() is None:
                program.stop(signal.SIGKILL)
        if self.upstream is None and self.upstream_url:
            # Requests of this worker must not count as the next worker's requests.
            wait_until(
                partial(_is_idle, self.upstream_url), PATIENCE, "the stand-in upstream has ended all that it was asked"
            )


@contextmanager
def local_gateway(folder: Path, **options: Any) -> Iterator[LocalGateway]:
    """A running gateway that is ended after the block."""
    folder.mkdir(exist_ok=True)
    gateway = LocalGateway(folder, **options)
    try:
        gateway.start()
        yield gateway
    finally:
        gateway.stop()
