"""Events as log records of OpenTelemetry, over HTTP (OTLP/HTTP, protobuf)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import requests
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from proofgate_schema.counts import format_count

from proofgate import __version__
from proofgate.siem import cef, ocsf
from proofgate.siem.events import ExchangeEvent
from proofgate.siem.sink import SinkError, is_notable, read_secret
from proofgate.telemetry import names

_TIMEOUTS = (5.0, 10.0)
_MAX_RESPONSE_BYTES = 1 << 16
#: The maximum time, in the year 2554. Later times are limited to it.
_MAX_TIME = (1 << 64) - 1
#: Field of an exchange for each attribute name.
_ATTRIBUTES = {
    "proofgate.request.id": "id",
    "proofgate.tenant": "tenant",
    "proofgate.tenant_seq": "tenant_seq",
    "proofgate.key": "key",
    "proofgate.key_name": "key_name",
    names.REQUEST_MODEL: "model",
    "proofgate.providers": "providers",
    "proofgate.verdict": "verdict",
    "proofgate.rules": "rules",
    "proofgate.outcome": "outcome",
    names.STATUS: "status",
    names.INPUT_TOKENS: "prompt_tokens",
    names.OUTPUT_TOKENS: "completion_tokens",
    "proofgate.cost_nanodollars": "cost_nanodollars",
    "proofgate.request.bytes": "request_bytes",
    "proofgate.response.bytes": "response_bytes",
    "proofgate.duration_us": "duration_us",
    names.CONVERSATION: "session",
    names.END_USER: "end_user",
    names.END_USER_NAME: "end_user_name",
    names.AGENT: "agent",
    "proofgate.parent_agent": "parent_agent",
    "proofgate.client_trace_id": "trace_id",
    names.CLIENT_ADDRESS: "client_address",
}
_EVENT_NAME = "proofgate.exchange"
#: The function that formats the body of a log record, by format. Another format uses attributes instead of a
#: body.
_BODY_FORMATTERS: dict[str, Callable[[ExchangeEvent], str]] = {"ocsf": ocsf.text, "cef": cef.text}
ATTRIBUTES_FORMAT = "attributes"
FORMATS = (ATTRIBUTES_FORMAT, *_BODY_FORMATTERS)


class OtlpSink:
    """An OTLP collector as a sink. For use by one thread."""

    def __init__(
        self,
        name: str,
        url: str,
        ledger: str,
        authorities: Path | None,
        authorization: Path | None,
        form: str = ATTRIBUTES_FORMAT,
    ) -> None:
        self._form = form
        self.name, self._url, self._authorization = name, f"{url.rstrip('/')}/v1/logs", authorization
        self._session = requests.Session()
        # Ignore proxies and netrc credentials of the environment: only the arguments determine what is sent.
        self._session.trust_env = False
        self._verify = True if authorities is None else str(authorities)
        attributes = {"service.name": "proofgate-auditor", "service.version": __version__}
        self._resource = Resource(attributes=_key_values(attributes | {"proofgate.ledger": ledger}))

    def send(self, events: Sequence[ExchangeEvent]) -> None:
        """See `EventSink`."""
        scope = ScopeLogs(
            scope=InstrumentationScope(name="proofgate", version=__version__),
            log_records=[log_record(event, self._form) for event in events],
        )
        request = ExportLogsServiceRequest(
            resource_logs=[ResourceLogs(resource=self._resource, scope_logs=[scope])]
        )
        headers = {"Content-Type": "application/x-protobuf"}
        if self._authorization is not None:
            headers["Authorization"] = read_secret(self._authorization)
        try:
            with self._session.post(
                self._url,
                request.SerializeToString(),
                headers=headers,
                timeout=_TIMEOUTS,
                allow_redirects=False,
                stream=True,
                verify=self._verify,
            ) as answer:
                self._check_response(answer.status_code, next(answer.iter_content(_MAX_RESPONSE_BYTES), b""))
        except requests.exceptions.SSLError:
            raise SinkError("siem_tls", "its certificate is not trusted, or TLS fails") from None
        except (requests.exceptions.RequestException, OSError):
            raise SinkError("siem_unreachable", "it is not reachable, or does not respond in time") from None

    @staticmethod
    def _check_response(status: int, body: bytes) -> None:
        if status != 200:
            raise SinkError("siem_refused", f"it responded with status {status}")
        try:
            rejected = ExportLogsServiceResponse.FromString(body).partial_success.rejected_log_records
        except DecodeError:
            # The collector accepted the events, but its response does not follow the protocol.
            return
        if rejected:
            raise SinkError("siem_refused", f"it rejects {format_count(rejected, 'record')}")


def log_record(event: ExchangeEvent, form: str = ATTRIBUTES_FORMAT) -> LogRecord:
    """Converts an event to a log record in one of `FORMATS`."""
    if form in _BODY_FORMATTERS:
        body, told = _BODY_FORMATTERS[form](event), {}
    else:
        body, told = f"exchange {event.facts['id']}: {event.facts['outcome']}", _attributes(event)
    told |= {"proofgate.record.origin": event.origin, "proofgate.record.index": event.index}
    notable = is_notable(event)
    return LogRecord(
        time_unix_nano=min(event.time * 1000, _MAX_TIME),
        observed_time_unix_nano=time.time_ns(),
        severity_number=SeverityNumber.SEVERITY_NUMBER_WARN
        if notable
        else SeverityNumber.SEVERITY_NUMBER_INFO,
        severity_text="WARN" if notable else "INFO",
        event_name=_EVENT_NAME,
        body=AnyValue(string_value=body),
        attributes=_key_values(told),
    )


def _attributes(event: ExchangeEvent) -> dict[str, Any]:
    told = {name: event.facts.get(fact) for name, fact in _ATTRIBUTES.items()}
    endpoint = event.facts.get("endpoint")
    if endpoint is not None:
        told[names.ROUTE] = endpoint.rpartition(" ")[2]
        told[names.OPERATION] = names.OPERATIONS.get(endpoint)
    return told


def _key_values(told: dict[str, Any]) -> list[KeyValue]:
    return [
        KeyValue(key=name, value=_value(value)) for name, value in told.items() if value not in (None, [])
    ]


def _value(value: Any) -> AnyValue:
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[_value(one) for one in value]))
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=str(value))
