"""Exchanges as spans: one for the exchange, and below it one for the request to its provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from proofgate import __version__
from proofgate.config.settings import Provider
from proofgate.telemetry import names
from proofgate.telemetry.names import ConventionNames

Exchange = Mapping[str, Any]
Attributes = dict[str, Any]


@dataclass(frozen=True)
class ProviderAddress:
    """The attributes in a span about the provider of a request."""

    kind: str
    address: str
    port: int

    @classmethod
    def from_provider(cls, provider: Provider) -> ProviderAddress:
        """Returns the address of a configured provider."""
        url = urlsplit(provider.base_url)
        port = url.port or {"http": 80, "https": 443}[url.scheme]
        return cls(names.PROVIDERS[provider.type], url.hostname or "", port)


class _PresetIdGenerator(IdGenerator):
    """Generates the ids that the worker created and already sent to providers."""

    trace_id = 0
    span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class _SpanCollector(SpanProcessor):
    """Collects the ended spans."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


class ExchangeSpans:
    """Builds spans from exchanges. For use by one thread at a time."""

    def __init__(
        self, resource: Resource, spoken: ConventionNames, places: Mapping[str, ProviderAddress]
    ) -> None:
        self._names = spoken
        self._places = places
        self._ids = _PresetIdGenerator()
        self._finished = _SpanCollector()
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        provider.add_span_processor(self._finished)
        self._tracer = provider.get_tracer("proofgate", __version__)

    def build(self, exchanges: Iterable[Exchange]) -> list[ReadableSpan]:
        """Returns the spans of exchanges, the outer span of each last."""
        for exchange in exchanges:
            self._add(exchange)
        found, self._finished.spans = self._finished.spans, []
        return found

    def _add(self, exchange: Exchange) -> None:
        self._ids.trace_id, self._ids.span_id = int(exchange["trace_id"], 16), int(exchange["span_id"], 16)
        began = exchange["ts"]
        ended = began + exchange["duration_us"]
        endpoint = exchange.get("endpoint")
        status = exchange["status"]
        server = self._tracer.start_span(
            " ".join(part for part in _method_and_route(exchange) if part) or "HTTP",
            context=self._parent(exchange),
            kind=SpanKind.SERVER,
            attributes=_server_attributes(exchange),
            start_time=began * 1000,
        )
        if status >= 500:
            server.set_status(Status(StatusCode.ERROR))
        if "provider" in exchange and "sent_us" in exchange:
            self._ids.span_id = int(exchange["client_span_id"], 16)
            operation = names.OPERATIONS.get(endpoint or "", "chat")
            client = self._tracer.start_span(
                f"{operation} {exchange.get('upstream_model', '')}".rstrip(),
                context=trace.set_span_in_context(server, Context()),
                kind=SpanKind.CLIENT,
                attributes=self._client_attributes(exchange, operation),
                start_time=(began + exchange["sent_us"]) * 1000,
            )
            if _error(exchange) is not None:
                client.set_status(Status(StatusCode.ERROR))
            client.end(ended * 1000)
        server.end(ended * 1000)

    @staticmethod
    def _parent(exchange: Exchange) -> Context:
        if "parent_span_id" not in exchange:
            return Context()
        parent = SpanContext(
            int(exchange["trace_id"], 16),
            int(exchange["parent_span_id"], 16),
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
        return trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())

    def _client_attributes(self, exchange: Exchange, operation: str) -> Attributes:
        attributes: Attributes = {
            names.OPERATION: operation,
            names.REQUEST_STREAM: exchange["stream"],
            "proofgate.provider": exchange["provider"],
            "proofgate.attempts": exchange["attempts"],
        }
        if "upstream_model" in exchange:
            attributes[names.REQUEST_MODEL] = exchange["upstream_model"]
        attributes |= _client_context_attributes(exchange)
        place = self._places.get(exchange["provider"])
        if place is not None:
            attributes |= {
                names.PROVIDER: place.kind,
                names.SERVER_ADDRESS: place.address,
                names.SERVER_PORT: place.port,
            }
        usage = exchange.get("usage")
        if usage is not None:
            told = {
                names.INPUT_TOKENS: usage["prompt_tokens"],
                names.OUTPUT_TOKENS: usage["completion_tokens"],
                names.CACHE_READ_TOKENS: usage.get("cached_prompt_tokens"),
                self._names.cache_write_tokens: usage.get("cache_write_tokens"),
                names.REASONING_TOKENS: usage.get("reasoning_tokens"),
            }
            attributes |= {name: count for name, count in told.items() if count is not None}
        if exchange["stream"] and "first_byte_us" in exchange:
            waited = exchange["first_byte_us"] - exchange["sent_us"]
            attributes[names.TIME_TO_FIRST_CHUNK] = max(waited, 0) / 1e6
        return attributes | _error_attributes(exchange)


def _server_attributes(exchange: Exchange) -> Attributes:
    attributes: Attributes = {
        names.STATUS: exchange["status"],
        "proofgate.request.id": exchange["id"],
        "proofgate.tenant": exchange["tenant"],
        "proofgate.outcome": exchange["outcome"],
        "proofgate.request.bytes": exchange["request_bytes"],
        "proofgate.response.bytes": exchange["response_bytes"],
    }
    method, route = _method_and_route(exchange)
    if route is not None:
        attributes[names.ROUTE] = route
    if method is not None:
        attributes[names.METHOD] = method
    for name, key in (("proofgate.model", "model"), ("proofgate.cost_nanodollars", "cost_nanodollars")):
        if key in exchange:
            attributes[name] = exchange[key]
    return attributes | _client_context_attributes(exchange) | _error_attributes(exchange)


def _client_context_attributes(exchange: Exchange) -> Attributes:
    """Attributes from the client about its session, its agent and its end user."""
    said = {
        names.CONVERSATION: exchange.get("session"),
        names.AGENT: exchange.get("agent"),
        "proofgate.parent_agent": exchange.get("parent_agent"),
        names.END_USER: exchange.get("end_user"),
    }
    return {name: value for name, value in said.items() if value is not None}


def _method_and_route(exchange: Exchange) -> tuple[str | None, str | None]:
    """For files and batches, `endpoint` contains both method and route. All other requests to providers are
    POST."""
    endpoint = exchange.get("endpoint")
    if endpoint is None:
        return None, None
    method, found, route = endpoint.partition(" ")
    if found:
        return method, route
    return "POST" if endpoint in names.OPERATIONS else None, endpoint


def _error(exchange: Exchange) -> str | None:
    status = exchange["status"]
    found: str | None = exchange.get("error")
    return found or (str(status) if status >= 400 else None)


def _error_attributes(exchange: Exchange) -> Attributes:
    error = _error(exchange)
    return {} if error is None else {names.ERROR: error}
