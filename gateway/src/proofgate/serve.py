"""The life of a worker process: start, serve the admin port, reload, drain on a signal, exit.

The main thread runs uvicorn for the admin port at the lowest priority; the Rust threads carry the traffic. A
signal drains, and the admin port stays up until the log is sealed: probes, metrics and proofs keep answering.
SIGHUP reads the configuration again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import uvloop

from proofgate import _core, allocator, process_limits, process_metrics, profiling, volume
from proofgate.admin import TRANSIENT_REASONS, create_app
from proofgate.archive import Archive
from proofgate.cgroups import read_cpu_quota
from proofgate.config import Config
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK
from proofgate.http_server import Server, ServerLimits, address_of, bind, on_signals
from proofgate.identity.renewal import CredentialRenewer
from proofgate.key_sets import KeySets
from proofgate.policy.runners import PolicyRunners
from proofgate.reading.routes import LedgerReadRoutes
from proofgate.reload import Reloader, ReloadOutcome, log_warnings
from proofgate.telemetry.exporter import TelemetryExporter
from proofgate.tenant_shards import TenantShards

log = logging.getLogger("proofgate")

LOWEST_PRIORITY = 19
# Maximum seconds after the drain deadline for the core to abort requests in flight, to seal and to sign.
SEAL_TIMEOUT_SECONDS = 10.0
# Seconds to seal after a second signal, which requests a quick end. Without a seal, the next worker needs a
# recovery.
SECOND_SIGNAL_SECONDS = 1.0
_JOIN_SLICE_SECONDS = 0.2
_JOIN_PAUSE_SECONDS = 0.05
_WATCH_SECONDS = 1.0
# Maximum seconds to wait for an auditor that reads this worker's folder. Only this worker can serve it the
# seal.
_AUDITOR_READ_SECONDS = 5.0


def serve(config: Config, shard: int) -> int:
    """Runs one worker until a signal ends it. Returns the exit code of the process.

    Raises ListenError, VolumeError, or the core's ConfigError, LedgerError or BindError, before the worker
    serves.
    """
    # A reload signal during the start must not end the process; the current file is being loaded anyway.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    allocator.return_large_blocks()
    log_warnings(config)
    process_limits.warn_about_shortages(process_limits.read_capacities(config))
    asked, configured = profiling.is_requested(os.environ), config.settings.profiling.stages
    stages = asked or configured
    # The admin port is bound first, because a worker that cannot be probed must not open an incarnation.
    with bind(config.settings.admin.listen) as listener:
        volume.claim(config.ledger_directory, config.settings.ledger.name)
        archive = Archive(config.ledger_directory)
        archive.store(config.public_json())
        worker = _core.Worker(config.to_core_json(shard, profile_stages=stages))
        profiling.attach(worker, stages)
        key_sets = KeySets(worker)
        key_sets.load_files(config)
        tenant_shards = TenantShards(worker, config.tenant_shards)
        tenant_shards.apply_changes()
        policies = PolicyRunners(worker)
        policies.prepare(config)
        policies.apply_config(config)
        worker.start()
        log.info(
            "stage profiling is %s (%s: %s, profiling.stages: %s)",
            *("on" if stages else "off", profiling.PROFILE_VARIABLE, asked, configured),
        )
        _yield_cpu()
        exporter = TelemetryExporter(worker)
        process = WorkerProcess(config, shard, worker, key_sets, tenant_shards, policies, exporter, archive)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(process.run(listener))
        finally:
            policies.close()
            exporter.close()


def _yield_cpu() -> None:
    """Lowers the priority of this thread, so that the data plane's threads take precedence on the CPU core.

    Linux has a nice value per thread, which new threads inherit and an unprivileged thread cannot lower
    again. So this is called only after the Rust threads exist.
    """
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)


class WorkerProcess:
    """Connects signals, the admin port, the configuration's files and the worker."""

    def __init__(
        self,
        config: Config,
        shard: int,
        worker: _core.Worker,
        key_sets: KeySets,
        tenant_shards: TenantShards,
        policies: PolicyRunners,
        exporter: TelemetryExporter,
        archive: Archive,
    ) -> None:
        self._worker = worker
        self._key_sets = key_sets
        self._credentials = CredentialRenewer(worker)
        self._reloader = Reloader(
            worker, config, shard, self._on_config_applied, tenant_shards, policies, archive
        )
        self._policies = policies
        self._exporter = exporter
        exporter.apply_config(config)
        self._draining = False
        self._retiring = False
        self._signalled = asyncio.Event()
        self._deadline: float | None = None
        self._verifying_key = config.verifying_key
        self._reading = LedgerReadRoutes(config.ledger_directory)
        key_sets.apply_config(config)
        self._credentials.follow(config)

    async def run(self, listener: socket.socket) -> int:
        """Serves until a signal, or until the worker's threads end. Returns the exit code."""
        with on_signals(self._on_signal), on_signals(self._reloader.request_reload, signal.SIGHUP):
            await asyncio.gather(self._key_sets.run_first_round(), self._credentials.run_first_round())
            async with self._run_background_tasks():
                return await self._serve(listener)

    async def _serve(self, listener: socket.socket) -> int:
        server = self._admin_server(listener)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            if await self._wait_for_signal(serving):
                return EXIT_OK if await self._wait_for_seal() else EXIT_FAILED
            return EXIT_FAILED
        finally:
            server.should_exit = True
            await serving

    @contextlib.asynccontextmanager
    async def _run_background_tasks(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._reloader.watch()), asyncio.create_task(self._key_sets.run())]
        tasks.append(asyncio.create_task(self._credentials.run()))
        tasks.append(asyncio.create_task(profiling.watch_loop()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def token(self) -> str | None:
        """The admin token of the configuration in force."""
        token = self._reloader.config.admin_token
        return token.get_secret_value() if token else None

    async def reload(self) -> ReloadOutcome:
        """Reads the configuration again and applies it if it differs."""
        return await self._reloader.reload()

    def status(self) -> dict[str, Any]:
        """The status of the configuration in force, of the last refused one, key sets, credentials, policies,
        telemetry and CPUs, and the needed and available resources of the process."""
        return {
            **self._reloader.status(),
            "key_sets": self._key_sets.status(),
            "credentials": self._credentials.status(),
            "policies": self._policies.status(),
            "telemetry": self._exporter.status(),
            **read_cpu_quota().as_json(),
            "capacity": process_limits.as_json(self._capacities()),
        }

    def metrics(self) -> str:
        """Metrics of the renewal of credentials, and of the process, its use of resources and its limits, as
        Prometheus text."""
        capacities = process_limits.metrics_of(self._capacities())
        return self._credentials.metrics() + capacities + process_metrics.render("worker", openmetrics=True)

    def _capacities(self) -> tuple[process_limits.Capacity, ...]:
        return process_limits.read_capacities(self._reloader.config)

    def _on_config_applied(self, config: Config) -> None:
        self._key_sets.load_files(config)
        self._key_sets.apply_config(config)
        self._credentials.follow(config)
        self._exporter.apply_config(config)

    def set_retiring(self, retire: bool) -> bool:
        """Retires the worker or cancels the retirement. Returns whether the worker is retiring afterwards."""
        retiring = self._worker.retire(retire)
        if retiring != self._retiring:
            self._retiring = retiring
            log.info(
                "retiring: not ready, but still serving requests"
                if retiring
                else "retirement cancelled: ready again"
            )
        return retiring

    def drain(self) -> None:
        """Starts to drain. The process runs until a signal, because a sealed worker still serves proofs."""
        if not self._draining:
            self._draining = True
            log.info("draining: new connections are refused, and exchanges in flight have time to finish")
            self._worker.drain()

    def _on_signal(self) -> None:
        now = time.monotonic()
        if self._deadline is None:
            timeouts = self._reloader.config.settings.timeouts
            self._deadline = now + timeouts.lame_duck_seconds + timeouts.drain_seconds + SEAL_TIMEOUT_SECONDS
            self.drain()
            self._signalled.set()
        else:
            log.warning(
                "second signal: exiting within %.0f s, even if the log is not sealed", SECOND_SIGNAL_SECONDS
            )
            self._deadline = min(self._deadline, now + SECOND_SIGNAL_SECONDS)

    def _admin_server(self, listener: socket.socket) -> Server:
        announcement = (
            f"proofgate ready: traffic={self._worker.address} admin={address_of(listener)} "
            f"origin={self._worker.origin} verifying-key={self._verifying_key}"
        )
        return Server(create_app(self._worker, self, self._reading), announcement, limits=self._bounds())

    def _bounds(self) -> ServerLimits:
        """The limits of the admin port: half of the descriptors that the core reserves for the port and the
        ledger."""
        usual = ServerLimits()
        reserved = json.loads(self._worker.status()).get("descriptors", {}).get("reserved")
        if reserved is None:
            return usual
        connections = max(2, min(usual.connections, int(reserved) // 2))
        return ServerLimits(connections=connections, requests=min(usual.requests, connections // 2))

    async def _wait_for_signal(self, serving: asyncio.Task[None]) -> bool:
        """Waits for a signal. Returns True after a signal, False if the worker or the admin server ended by
        itself."""
        while not self._signalled.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WATCH_SECONDS):
                    await self._signalled.wait()
            if serving.done():
                log.error("the admin server ended unexpectedly")
                return False
            if self._worker.ready() == "failed":
                log.error(
                    "a worker thread ended unexpectedly: the worker exits, and its next start closes the log"
                )
                return False
        return True

    async def _wait_for_seal(self) -> bool:
        """Waits for the seal until the deadline, in short steps, because a second signal moves the
        deadline."""
        while True:
            assert self._deadline is not None  # noqa: S101 - set before the signal is announced
            left = self._deadline - time.monotonic()
            if await profiling.run_in_thread(self._worker.join, min(_JOIN_SLICE_SECONDS, max(left, 0.0))):
                log.info("sealed: %s", self._worker.origin)
                await self._wait_for_auditor()
                return True
            reason = self._worker.ready()
            if reason not in TRANSIENT_REASONS:
                log.error("the log cannot be sealed: %s; the worker's next start closes it", reason)
                return False
            if left <= 0:
                log.error("the drain deadline passed: the worker's next start closes the log")
                return False
            # The join returns immediately if its threads have ended.
            await asyncio.sleep(_JOIN_PAUSE_SECONDS)

    async def _wait_for_auditor(self) -> None:
        """Waits for a short time until an auditor that follows this worker has read the seal."""
        assert self._deadline is not None  # noqa: S101 - set before the signal is announced
        looks, until = self._reading.pass_count, time.monotonic() + _AUDITOR_READ_SECONDS
        while not self._reading.is_fully_read_since(looks):
            if time.monotonic() >= min(until, self._deadline):
                return
            await asyncio.sleep(_JOIN_PAUSE_SECONDS)
