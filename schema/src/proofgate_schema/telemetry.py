"""The section `telemetry`: the access log, and what is exported by OpenTelemetry."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.fields import HEADER_NAME, Listed, MountedFile, keyed_by
from proofgate_schema.section import Section
from proofgate_schema.urls import BaseURL

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
#: Fields of a request's head that the exporter writes itself.
OWN_HEADERS = (
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
)


def _header_name(text: str) -> str:
    if not _HEADER.fullmatch(text) or text.lower() in OWN_HEADERS:
        raise ValueError("write the name of a header field, such as Authorization, of at most 64 characters")
    return text


class ExportHeader(Section):
    """A header field that goes with each export."""

    name: Annotated[
        str,
        AfterValidator(_header_name),
        HEADER_NAME,
    ]
    """Its name, for example Authorization."""


class ResourceAttribute(Section):
    """An attribute of everything that is exported."""

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[a-z][a-z0-9_.]*$")]
    """Its name, for example deployment.environment.name."""
    value: Annotated[str, Field(max_length=256)]
    """Its value."""


class Traces(Section):
    """Traces of exchanges: a span for the exchange, and one for what its provider does."""

    ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of traces that are sampled of those that begin here. A trace that a client names is sampled where
    the client sampled it."""
    propagate: bool = True
    """Whether providers are told of the trace (traceparent and tracestate)."""


class Telemetry(Section):
    """The access log, and what is exported by OpenTelemetry. By default there is neither. Values of header
    fields are secrets: each side has `headers` of its own."""

    access_log: Literal["None", "Errors", "All"] = "None"
    """Which exchanges have a line of JSON on a worker's standard output. Errors: those that did not end well,
    and those whose answer has a status from 400 on."""
    endpoint: BaseURL | None = None
    """Base URL of a collector that takes OTLP over HTTP, for example https://collector.example.com:4318;
    /v1/traces and /v1/metrics are appended."""
    ca_file: MountedFile | None = None
    """Certificates to trust in place of those that come with the workers, PEM. Only for an endpoint with
    https. In a cluster: where they are mounted in the workers (spec.worker.podTemplate)."""
    traces: Traces | None = None
    """Absent: there are none."""
    metrics: bool = False
    """Whether the collector gets metrics, every 15 seconds."""
    semantic_conventions: Literal["Latest", "V1_41"] = "Latest"
    """Which names of OpenTelemetry's conventions for generative AI are used: those of today, or those of
    version 1.41, which more dashboards know."""
    resource_attributes: Annotated[Listed[ResourceAttribute], Field(max_length=32), keyed_by("name")] = ()
    """Attributes of everything that is exported, for example deployment.environment.name."""
