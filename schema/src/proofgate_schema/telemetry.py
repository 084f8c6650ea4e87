"""The section `telemetry`: the access log, and the export by OpenTelemetry."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.fields import HEADER_NAME, MountedFile, TupleOf, unique_by
from proofgate_schema.section import Section
from proofgate_schema.urls import BaseURL

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
#: Header fields that the exporter writes itself.
EXPORTER_HEADERS = (
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
)


def _header_name(text: str) -> str:
    if not _HEADER.fullmatch(text) or text.lower() in EXPORTER_HEADERS:
        raise ValueError("write the name of a header field, such as Authorization, of at most 64 characters")
    return text


class ExportHeader(Section):
    """A header field that is sent with each export."""

    name: Annotated[
        str,
        AfterValidator(_header_name),
        HEADER_NAME,
    ]
    """Name of the header field, for example Authorization."""


class ResourceAttribute(Section):
    """A resource attribute of all exported telemetry."""

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[a-z][a-z0-9_.]*$")]
    """Name of the attribute, for example deployment.environment.name."""
    value: Annotated[str, Field(max_length=256)]
    """Value of the attribute."""


class Traces(Section):
    """Traces of exchanges: one span for the exchange, and one for each request to a provider."""

    ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Fraction of the traces started by the gateway that are sampled. A trace that a client started is
    sampled if the client sampled it."""
    propagate: bool = True
    """Whether requests to providers carry the trace context (traceparent and tracestate)."""


class Telemetry(Section):
    """The access log, and telemetry export by OpenTelemetry. Both are off by default. The file and the
    manifest each have their own `headers`, whose values are secrets."""

    access_log: Literal["None", "Errors", "All"] = "None"
    """Exchanges that a worker logs as JSON lines on standard output. Errors: failed exchanges, and responses
    with a status of 400 or above."""
    endpoint: BaseURL | None = None
    """Base URL of a collector that accepts OTLP over HTTP, for example https://collector.example.com:4318.
    /v1/traces and /v1/metrics are appended. Absent: nothing is exported."""
    ca_file: MountedFile | None = None
    """File with CA certificates (PEM) to trust instead of the workers' built-in CA certificates. Only for an
    endpoint with https. On Kubernetes, mount the file into the workers with spec.worker.podTemplate, and give
    its path in the container."""
    traces: Traces | None = None
    """Export of traces. Absent: none are exported."""
    metrics: bool = False
    """Whether metrics are exported to the collector, every 15 seconds."""
    semantic_conventions: Literal["Latest", "V1_41"] = "Latest"
    """Version of OpenTelemetry's conventions for generative AI that exported names follow. Latest: the
    current version. V1_41: version 1.41, which more dashboards support."""
    resource_attributes: Annotated[TupleOf[ResourceAttribute], Field(max_length=32), unique_by("name")] = ()
    """Resource attributes of all exported telemetry, for example deployment.environment.name."""
