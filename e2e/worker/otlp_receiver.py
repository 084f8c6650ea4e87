"""An OTLP collector over HTTP, built from OpenTelemetry's own types, that stores the received data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from e2e.loopback_server import loopback_server, url_of


def value(found: AnyValue) -> Any:
    """The value of an attribute."""
    kind = found.WhichOneof("value")
    return None if kind is None else getattr(found, kind)


def attributes(found: Any) -> dict[str, Any]:
    """The attributes of a span, a point or a resource."""
    pairs: list[KeyValue] = list(found.attributes)
    return {pair.key: value(pair.value) for pair in pairs}


@dataclass
class Receiver:
    """The received data, and the status of its answers."""

    status: int = 200
    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)

    def take(self, path: str, body: bytes) -> None:
        """Stores the data of one request."""
        self.bodies.append(body)
        if path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            for resource in traces.resource_spans:
                self.resources.append(attributes(resource.resource))
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        elif path == "/v1/logs":
            logs = ExportLogsServiceRequest.FromString(body)
            for told in logs.resource_logs:
                self.logs += [attributes(record) for scope in told.scope_logs for record in scope.log_records]
        else:
            metrics = ExportMetricsServiceRequest.FromString(body)
            for resource in metrics.resource_metrics:
                self.metrics |= {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}

    def pair(self, request_id: str) -> tuple[Span, Span | None]:
        """The spans of an exchange: the server span, and the provider's span if there is one."""
        [server] = [span for span in self.spans if attributes(span).get("proofgate.request.id") == request_id]
        below = [span for span in self.spans if span.parent_span_id == server.span_id]
        return server, below[0] if below else None

    def has(self, request_id: str) -> bool:
        """Whether the spans of an exchange have been received."""
        return any(attributes(span).get("proofgate.request.id") == request_id for span in self.spans)


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A collector on loopback."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.headers.append({name.lower(): text for name, text in self.headers.items()})
            if found.status == 200:
                found.take(self.path, body)
            self.send_response(found.status)
            self.send_header("Content-Length", "7")
            self.end_headers()
            self.wfile.write(b"rubbish")

        def log_message(self, *_: object) -> None:
            pass

    with loopback_server(Handler) as server:
        found.url = url_of(server)
        yield found
