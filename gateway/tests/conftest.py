"""Shared fixtures: a configuration, a running worker, servers on loopback, waiting for a condition."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import auditor_double
import httpx
import hypothesis
import mirror_core_double
import payloads_double
import pytest
import replay_double
import retention_double
import uvloop
from faulty_worker import Worker
from signing import LEDGER

from proofgate import _core, profiling
from proofgate.config import Config, InvalidConfigError, load
from proofgate.http_server import Server, ServerLimits, address_of, bind
from proofgate.reload import ReloadOutcome

# The environment may contain a proxy, which would get the requests to loopback, worker settings, and any
# umask.
_FOREIGN = ("PROOFGATE_SHARD", "PROOFGATE_ACCEPTED_CONFIG", "PROOFGATE_PROFILE_STAGES")
for _name in ("http_proxy", "https_proxy", "all_proxy", *_FOREIGN):
    os.environ.pop(_name, None)
    os.environ.pop(_name.upper(), None)
os.umask(0o022)

# Examples have no deadline, because the machine may be busy.
hypothesis.settings.register_profile(
    "tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tests")

AnyWorker = TypeVar("AnyWorker", bound=Worker)
#: How long a test waits for an event; only failing tests wait this long.
PATIENCE_SECONDS = 60.0
# Without certificate verification, because loading the authorities takes longer than most tests.
_CLIENT: dict[str, Any] = {"timeout": PATIENCE_SECONDS, "trust_env": False, "verify": False}
#: Sends requests to servers on loopback, with a new connection for each request.
HTTP = httpx.Client(limits=httpx.Limits(max_keepalive_connections=0), **_CLIENT)
SECRETS = ("sk-very-secret", LEDGER.secret, "0123456789abcdef-admin")
ACME_HASH = _core.hash_api_key("acme-key")


class ConfigDirectory:
    """A directory with a complete configuration, in which each test changes one part."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / "gateway.yaml"
        self.ledger = path / "ledger"
        self.ledger.mkdir()
        self.write("signing-key", f"{LEDGER.signing}\n")
        self.write("openai-key", "sk-very-secret\n")
        self.write("admin-token", "0123456789abcdef-admin\n")
        self.write("globex-keys", f"# rotated in March\n\n{_core.hash_api_key('globex-key')}\n")
        self.file.write_text((Path(__file__).parent / "gateway.yaml").read_text().replace("ACME", ACME_HASH))

    def write(self, name: str, content: str) -> None:
        (self.path / name).write_text(content)
        (self.path / name).chmod(0o600)

    def replace(self, old: str, new: str) -> None:
        """Changes the configuration file, which must contain the old text."""
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new, 1))

    def append(self, text: str) -> None:
        """Adds sections to the end of the configuration file."""
        self.file.write_text(self.file.read_text() + text)

    def problems(self) -> InvalidConfigError:
        """The error that refuses the configuration; asserts that it contains no secret."""
        with pytest.raises(InvalidConfigError) as caught:
            load(self.file)
        for secret in SECRETS:
            assert secret not in str(caught.value)
        return caught.value

    def codes(self) -> list[str]:
        """The codes of all problems."""
        return [problem.code for problem in self.problems().problems]

    def core(self) -> dict[str, Any]:
        """The configuration as the core receives it."""
        document: dict[str, Any] = json.loads(load(self.file).to_core_json(shard=3))
        return document


class Controls:
    """The worker's process from the admin port's view; counts drains, and answers reloads with `outcome`."""

    def __init__(self, worker: Worker, token: str | None) -> None:
        self.worker = worker
        self.token = token
        self.drains = 0
        self.retirements: list[bool] = []
        self.reloads = 0
        self.outcome = ReloadOutcome("unchanged", "ab" * 32)

    def set_retiring(self, retire: bool) -> bool:
        self.retirements.append(retire)
        return bool(self.worker.retire(retire))

    def drain(self) -> None:
        self.drains += 1
        self.worker.drain()

    async def reload(self) -> ReloadOutcome:
        self.reloads += 1
        return self.outcome

    def status(self) -> dict[str, Any]:
        return {"config_digest": "ab" * 32, "last_reload_error": None}

    def metrics(self) -> str:
        return ""


def started(config: Config, shard: int = 0) -> contextlib.AbstractContextManager[Worker]:
    """A running worker that is sealed at the end of the block."""
    return started_as(Worker, config, shard)


@contextlib.contextmanager
def started_as(kind: type[AnyWorker], config: Config, shard: int = 0) -> Iterator[AnyWorker]:
    """Like `started`, for another class of worker."""
    worker = kind(config.to_core_json(shard))
    worker.start()
    try:
        yield worker
    finally:
        worker.core.drain()
        assert worker.core.join(PATIENCE_SECONDS)


@contextlib.contextmanager
def attached(worker: Worker, enabled: bool = False) -> Iterator[_core.Worker]:
    """Attaches the worker to this process's profiling."""
    typed = cast("_core.Worker", worker)
    profiling.attach(typed, enabled)
    try:
        yield typed
    finally:
        profiling.detach()


def _stands_in(fake: ModuleType, *names: str) -> Any:
    """A fixture that replaces these names of the core by the module's."""

    def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
        for name in names:
            monkeypatch.setattr(_core, name, getattr(fake, name))

    return pytest.fixture(stand_in)


# Stand-ins for parts of the core that need a whole ledger or much time. Tests request them by name.
fake_auditor = _stands_in(auditor_double, "Auditor")
fake_retention_state = _stands_in(retention_double, "RetentionState")
fake_replay = _stands_in(replay_double, "RecordedExchanges", "Replayer")
fake_payloads = _stands_in(payloads_double, "StoredPayloads", "stored_payload")
fake_pinned = _stands_in(mirror_core_double, "fsck_pinned")


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for a Unix socket, whose path is limited to about 100 bytes; pytest's may be too long."""
    with tempfile.TemporaryDirectory(prefix="proofgate-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def config_directory(tmp_path: Path) -> ConfigDirectory:
    path = tmp_path / "config"
    path.mkdir()
    return ConfigDirectory(path)


class _PromptServer(Server):
    """Stops immediately. uvicorn's server checks only ten times a second whether to stop."""

    def __init__(self, app: Callable[..., object], bounds: ServerLimits) -> None:
        super().__init__(app, "", limits=bounds)
        self.has_started = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)
        self.has_started.set()

    def end(self) -> None:
        """Stops the server, from any thread."""
        self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn's
                    await asyncio.sleep(0.001)


@contextlib.contextmanager
def refusing_port() -> Iterator[int]:
    """A port of 127.0.0.1 that refuses connections: it is bound, but nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        yield port


def client_of(url: str) -> httpx.Client:
    """A client of a server on loopback with persistent connections."""
    return httpx.Client(base_url=url, **_CLIENT)


@contextlib.contextmanager
def serving(
    app: Callable[..., Any],
    bounds: ServerLimits | None = None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> Iterator[str]:
    """Serves an application on loopback with uvicorn in a thread; yields its URL."""
    server = _PromptServer(app, bounds or ServerLimits())
    listener = bind("127.0.0.1:0")
    url = f"http://{address_of(listener)}"

    def run() -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(server.serve(sockets=[listener]))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert server.has_started.wait(PATIENCE_SECONDS)
    try:
        yield url
    finally:
        server.end()
        thread.join()


def eventually(condition: Callable[[], bool]) -> bool:
    """Waits until a condition holds; returns False after `PATIENCE_SECONDS`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.01)
    return True
