"""Client of a collector for OTLP over HTTP, from one configuration."""

from __future__ import annotations

import json
import re

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult

from proofgate import __version__
from proofgate.config import Config
from proofgate.telemetry.names import NAMES
from proofgate.telemetry.points import MetricPoints
from proofgate.telemetry.spans import ExchangeSpans, ProviderAddress

# Maximum seconds of one export, including the library's retries.
EXPORT_SECONDS = 5.0
MAX_HEADER_BYTES = 4096


class HeaderFileError(Exception):
    """A file does not contain a valid value of a header field. The message only names the file."""


class Collector:
    """Sends spans and metrics to a collector. For use by one thread at a time."""

    def __init__(self, config: Config, worker_origin: str, since: int) -> None:
        """`since` is the start of the worker's counts, in Unix nanoseconds."""
        self._settings = config.settings.telemetry
        self._base = config.source.parent
        names = NAMES[self._settings.semantic_conventions]
        attributes: dict[str, str] = {
            "service.name": "proofgate",
            "service.version": __version__,
            "service.instance.id": worker_origin,
            **{attribute.name: attribute.value for attribute in self._settings.resource_attributes},
        }
        resource = Resource.create(attributes)
        places = {
            provider.name: ProviderAddress.from_provider(provider) for provider in config.settings.providers
        }
        self._spans = ExchangeSpans(resource, names, places)
        self._points = MetricPoints(resource, names, places, since)
        self._headers: dict[str, str] | None = None
        self._traces: OTLPSpanExporter | None = None
        self._metrics: OTLPMetricExporter | None = None

    def send_traces(self, exchanges: list[str]) -> bool:
        """Sends exchanges from `_core.ExchangeQueue.take`. Returns whether the collector accepted them."""
        spans = self._spans.build(json.loads(exchange) for exchange in exchanges)
        self._connect()
        assert self._traces is not None  # noqa: S101 - it is connected
        return self._traces.export(spans) is SpanExportResult.SUCCESS

    def send_metrics(self, counted: str, now: int) -> bool:
        """Sends the result of `_core.Worker.counted`. Returns whether the collector accepted it."""
        data = self._points.metrics_at(json.loads(counted), now)
        self._connect()
        assert self._metrics is not None  # noqa: S101 - it is connected
        return self._metrics.export(data, timeout_millis=EXPORT_SECONDS * 1000) is MetricExportResult.SUCCESS

    def close(self) -> None:
        """Closes the connections."""
        if self._traces is not None:
            self._traces.shutdown()  # type: ignore[no-untyped-call]
        if self._metrics is not None:
            self._metrics.shutdown()
        self._headers = self._traces = self._metrics = None

    def _connect(self) -> None:
        """Creates the exporters, and again when the value of a header field has changed.

        Raises OSError, HeaderFileError.
        """
        headers = {header.name: self._value(header.value_file) for header in self._settings.headers}
        if headers == self._headers:
            return
        self.close()
        session = requests.Session()
        # Ignore proxies and netrc credentials of the environment: only the configuration determines what is
        # sent.
        session.trust_env = False
        url, ca_file = self._settings.endpoint, self._settings.ca_file
        certificates = None if ca_file is None else str(self._base / ca_file)
        self._traces = OTLPSpanExporter(
            f"{url}/v1/traces", certificates, headers=headers, timeout=EXPORT_SECONDS, session=session
        )
        self._metrics = OTLPMetricExporter(
            f"{url}/v1/metrics", certificates, headers=headers, timeout=EXPORT_SECONDS, session=session
        )
        self._headers = headers

    def _value(self, name: str) -> str:
        path = self._base / name
        with path.open("rb") as file:
            content = file.read(MAX_HEADER_BYTES + 1)
        value = content.decode("ascii", errors="replace").strip()
        if len(content) > MAX_HEADER_BYTES or not re.fullmatch(r"[ -~]+", value):
            raise HeaderFileError(
                f"{path} must contain one line of printable ASCII, at most {MAX_HEADER_BYTES} characters"
            )
        return value
