"""The thread that exports traces and metrics.

Problems of a collector affect only telemetry, and are counted.
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
# Seconds for which traces are collected before an export. The queue holds 4096 of them.
TRACES_INTERVAL_SECONDS = 1.0
METRICS_INTERVAL_SECONDS = 15.0
BATCH_SIZE = 512
# Seconds that the last export has when the process ends.
CLOSE_SECONDS = 2.0
# Seconds between two log lines about failures, because an unreachable collector fails many exports.
ERROR_LOG_INTERVAL_SECONDS = 60.0


class TelemetryExporter:
    """Exports the telemetry that the configuration in force requests.

    The thread starts with the first configuration that requests telemetry.
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
        """Applies the settings of a configuration. The worker must be running."""
        settings = config.settings.telemetry
        asked = settings.endpoint is not None and (settings.traces is not None or settings.metrics)
        self._config = config if asked else None
        self._changed = True
        if asked and self._thread is None:
            self._queue = self._worker.exchange_queue()
            self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
            self._thread.start()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Ends the thread, and waits for it at most `seconds`."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def status(self) -> dict[str, Any]:
        """The status for the admin port."""
        return {"exporting": self._config is not None, "error": self._error}

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        # The library would log a message for each failed export, which may quote a collector's response.
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
                # The rest stays in the queue, whose size is limited, until the next export.
                return

    def _send_metrics(self, config: Config) -> None:
        try:
            # If the clock was set back, the period would end before it started.
            now = max(time.time_ns(), self._since)
            sent = self._collector_of(config).send_metrics(self._worker.traffic_report(), now)
            self._record_result("metrics", 1, None if sent else "the collector did not accept them")
        except Exception as error:
            self._record_result("metrics", 1, type(error).__name__)

    def _collector_of(self, config: Config) -> Collector:
        if self._collector is None:
            # This import is the only one of OpenTelemetry's packages.
            from proofgate.telemetry.collector import Collector

            self._collector = Collector(config, self._worker.origin, self._since)
        return self._collector

    def _record_result(self, signal: str, count: int, error: str | None) -> None:
        """Records the result of an export.

        Only the type of an error is reported, because its message may quote a header field.
        """
        self._error = error
        if error is None:
            return
        self._worker.count_lost_telemetry(signal, count)
        now = time.monotonic()
        if now - self._logged_at >= ERROR_LOG_INTERVAL_SECONDS:
            self._logged_at = now
            log.error("telemetry: %s are not exported: %s", signal, error)
