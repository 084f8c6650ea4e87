"""The life of a worker process: start, serve the admin port, drain on a signal, exit.

The main thread runs uvicorn for the admin port at the lowest priority; the Rust threads carry the traffic. A
signal drains, and the admin port stays up until the log is sealed: probes, metrics and proofs keep answering.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time

import uvloop

from proofgate import _core
from proofgate.admin import PASSING, create_app
from proofgate.config import Config
from proofgate.http_server import Server, address_of, bind, on_signals

log = logging.getLogger("proofgate")

EXIT_SEALED = 0
EXIT_FAILED = 1

LOWEST_PRIORITY = 19
# After the drain deadline the core cuts what is still in flight, then seals and signs: so long may that take.
SETTLE_SECONDS = 10.0
# A second signal asks to be quick, but an unsealed log costs the successor a recovery: one more chance.
HURRY_SECONDS = 1.0
_JOIN_SLICE_SECONDS = 0.2
_JOIN_PAUSE_SECONDS = 0.05
_WATCH_SECONDS = 1.0


def serve(config: Config, shard: int) -> int:
    """Runs one worker until a signal ends it. Returns the exit code of the process.

    Raises ListenError, or the core's ConfigError, LedgerError or BindError, before anything serves.
    """
    # The admin port first: a worker that cannot be probed must not open an incarnation.
    with bind(config.settings.admin.listen) as listener:
        worker = _core.Worker(config.to_core_json(shard))
        worker.start()
        _yield_the_core()
        process = WorkerProcess(config, worker)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(process.run(listener))


def _yield_the_core() -> None:
    """Gives the core to the data plane whenever both want it.

    Linux keeps a nice value per thread, and new threads inherit it: so only after the Rust threads exist,
    because an unprivileged thread can never raise its priority again.
    """
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)


class WorkerProcess:
    """Connects signals, the admin port and the worker."""

    def __init__(self, config: Config, worker: _core.Worker) -> None:
        timeouts = config.settings.timeouts
        self._drain_seconds = timeouts.lame_duck_seconds + timeouts.drain_seconds + SETTLE_SECONDS
        self._worker = worker
        self._draining = False
        self._signalled = asyncio.Event()
        self._deadline: float | None = None
        self._token = config.admin_token.get_secret_value() if config.admin_token else None
        self._verifying_key = config.verifying_key

    async def run(self, listener: socket.socket) -> int:
        """Serves until a signal, or until the worker's threads die. Returns the exit code."""
        server = self._admin_server(listener)
        with on_signals(self._on_signal):
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                if await self._wait_for_signal(serving):
                    return EXIT_SEALED if await self._sealed() else EXIT_FAILED
                return EXIT_FAILED
            finally:
                server.should_exit = True
                await serving

    def drain(self) -> None:
        """Begins to drain. The process stays until a signal: a sealed worker still proves what it did."""
        if not self._draining:
            self._draining = True
            log.info("draining: new connections are turned away, exchanges in flight have time to finish")
            self._worker.drain()

    def _on_signal(self) -> None:
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._drain_seconds
            self.drain()
            self._signalled.set()
        else:
            log.warning("second signal: leaving within %.0f s, sealed or not", HURRY_SECONDS)
            self._deadline = min(self._deadline, now + HURRY_SECONDS)

    def _admin_server(self, listener: socket.socket) -> Server:
        announcement = (
            f"proofgate ready: traffic={self._worker.address} admin={address_of(listener)} "
            f"origin={self._worker.origin} verifying-key={self._verifying_key}"
        )
        return Server(create_app(self._worker, self._token, self.drain), announcement)

    async def _wait_for_signal(self, serving: asyncio.Task[None]) -> bool:
        """True after a signal; False when the worker or the admin server ended by themselves."""
        while not self._signalled.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._signalled.wait(), _WATCH_SECONDS)
            if serving.done():
                log.error("the admin server ended by itself")
                return False
            if self._worker.ready() == "failed":
                log.error("a thread of the worker ended by itself: the next incarnation closes its log")
                return False
        return True

    async def _sealed(self) -> bool:
        """Waits for the seal until the deadline, in slices, because a second signal moves the deadline."""
        while True:
            assert self._deadline is not None  # noqa: S101 - set before the signal is announced
            left = self._deadline - time.monotonic()
            if await asyncio.to_thread(self._worker.join, min(_JOIN_SLICE_SECONDS, max(left, 0.0))):
                log.info("sealed: %s", self._worker.origin)
                return True
            reason = self._worker.ready()
            if reason not in PASSING:
                log.error("the log cannot be sealed: %s; the next incarnation closes it", reason)
                return False
            if left <= 0:
                log.error("the drain deadline passed: the next incarnation closes what is left")
                return False
            # A join whose threads have ended does not wait.
            await asyncio.sleep(_JOIN_PAUSE_SECONDS)
