"""The thread that exports traces and metrics.

Whatever a collector does costs telemetry alone, and is counted.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from proofgate import _core
from proofgate.config import Config

if TYPE_CHECKING:
    from proofgate.telemetry.collector import Collector

log = logging.getLogger("proofgate")

LOWEST_PRIORITY = 19
# Traces gather for so long; the queue holds 4096 of them.
TRACES_INTERVAL_SECONDS = 1.0
METRICS_INTERVAL_SECONDS = 15.0
BATCH_SIZE = 512
# A process that ends gives the last export so long.
CLOSE_SECONDS = 2.0
# A collector that is down is down for many exports: the log has one line in this time.
ERROR_LOG_INTERVAL_SECONDS = 60.0


class TelemetryExporter:
    """Exports what the configuration in force asks for.

    It has a thread from when the first one asks for something.
    """

    def __init__(self, worker: _core.Worker) -> None:
        self._worker = worker
        self._queue: _core.ExchangeQueue | None = None
        self._since = time.time_ns()
        self._config: Config | None = None
        self._changed = False
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: str | None = None
        self._logged_at = float("-inf")
        self._collector: Collector | None = None
        self._metrics_at = float("-inf")

    def apply_config(self, config: Config) -> None:
        """Exports as this configuration says from now on. The worker runs."""
        settings = config.settings.telemetry
        asked = settings.endpoint is not None and (settings.traces is not None or settings.metrics)
        self._config = config if asked else None
        self._changed = True
        if asked and self._thread is None:
            self._queue = self._worker.exchange_queue()
            self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
            self._thread.start()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Ends the thread, and waits for that as long."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def status(self) -> dict[str, Any]:
        """What the admin port shows."""
        return {"exporting": self._config is not None, "error": self._error}

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        # Its own messages may quote what a collector answered, one for each export.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        while not self._ends.wait(TRACES_INTERVAL_SECONDS):
            self._export_once()
        self._metrics_at = float("-inf")
        self._export_once()

    def _export_once(self) -> None:
        if self._changed:
            self._changed = False
            if self._collector is not None:
                self._collector.close()
            self._collector = None
        config = self._config
        if config is None:
            return
        self._send_traces(config)
        now = time.monotonic()
        if config.settings.telemetry.metrics and now - self._metrics_at >= METRICS_INTERVAL_SECONDS:
            self._metrics_at = now
            self._send_metrics(config)

    def _send_traces(self, config: Config) -> None:
        while self._queue is not None and (exchanges := self._queue.take(BATCH_SIZE)):
            try:
                sent = self._collector_of(config).send_traces(exchanges)
                self._record_result(
                    "traces", len(exchanges), None if sent else "the collector did not accept them"
                )
            except Exception as error:
                self._record_result("traces", len(exchanges), type(error).__name__)
            if self._error is not None:
                # What is left waits for the next turn: it is bounded, and may then be taken.
                return

    def _send_metrics(self, config: Config) -> None:
        try:
            # A clock that was set back would end what is counted before it began.
            now = max(time.time_ns(), self._since)
            sent = self._collector_of(config).send_metrics(self._worker.counted(), now)
            self._record_result("metrics", 1, None if sent else "the collector did not accept them")
        except Exception as error:
            self._record_result("metrics", 1, type(error).__name__)

    def _collector_of(self, config: Config) -> Collector:
        if self._collector is None:
            # OpenTelemetry's packages are imported here, and only here.
            from proofgate.telemetry.collector import Collector

            self._collector = Collector(config, self._worker.origin, self._since)
        return self._collector

    def _record_result(self, signal: str, count: int, error: str | None) -> None:
        """Notes what came of an export.

        Of an error only its type is told: the message may quote a header field.
        """
        self._error = error
        if error is None:
            return
        self._worker.telemetry_lost(signal, count)
        now = time.monotonic()
        if now - self._logged_at >= ERROR_LOG_INTERVAL_SECONDS:
            self._logged_at = now
            log.error("telemetry: %s are not exported: %s", signal, error)
