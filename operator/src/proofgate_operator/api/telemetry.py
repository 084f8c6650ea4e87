"""What is told of exchanges beyond the ledger and the metrics, as frozen models."""

from collections.abc import Iterator
from typing import Annotated, Literal

from proofgate_schema.telemetry import Traces
from pydantic import Field

from proofgate_operator.api.fields import AUTHORITY, SecretKeyRef, Section, keyed_by

_URL = rf'^https?://{AUTHORITY}(/[!-"$->@-~]*)?$'
_HEADER = r"^[A-Za-z0-9]([-A-Za-z0-9_]*[A-Za-z0-9])?$"
_ATTRIBUTE = r"^[a-z][a-z0-9_.]*$"
_PATH = r"^/[!-~]*$"


class TelemetryHeader(Section):
    """A header field that goes with each export."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=_HEADER)]
    """Its name, for example Authorization."""
    secret_ref: SecretKeyRef
    """Its value: one line of printable ASCII, at most 4096 characters. Mounted into the workers, never
    copied; another value in the entry is used within seconds, another entry rolls the workers."""


class ResourceAttribute(Section):
    """An attribute of everything that is exported."""

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=_ATTRIBUTE)]
    """Its name."""
    value: Annotated[str, Field(max_length=256)]
    """Its value."""


class Telemetry(Section):
    """What is told of exchanges beyond the ledger and the metrics. By default nothing is."""

    access_log: Literal["None", "Errors", "All"] = "None"
    """Which exchanges have a line of JSON on a worker's standard output. Errors: those that did not end well,
    and those whose answer has a status from 400 on."""
    endpoint: Annotated[str | None, Field(min_length=1, max_length=512, pattern=_URL)] = None
    """Base URL of a collector that takes OTLP over HTTP, for example https://collector.example.com:4318;
    /v1/traces and /v1/metrics are appended."""
    headers: Annotated[
        tuple[TelemetryHeader, ...], Field(max_length=8, json_schema_extra=keyed_by("name"))
    ] = ()
    """Header fields for the collector."""
    ca_file: Annotated[str | None, Field(max_length=256, pattern=_PATH)] = None
    """Certificates to trust in place of those that come with the workers, PEM: where they are mounted in the
    workers (spec.worker.podTemplate)."""
    traces: Traces | None = None
    """Absent: there are none."""
    metrics: bool = False
    """Whether the collector gets metrics, every 15 seconds."""
    semantic_conventions: Literal["Latest", "V1_41"] = "Latest"
    """Which names of OpenTelemetry's conventions for generative AI are used: those of today, or those of
    version 1.41, which more dashboards know."""
    resource_attributes: Annotated[
        tuple[ResourceAttribute, ...], Field(max_length=32, json_schema_extra=keyed_by("name"))
    ] = ()
    """Attributes of everything that is exported, for example deployment.environment.name."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Return each entry of a Secret that it needs: its field, its file in workers, and where it is."""
        for header in self.headers:
            yield f"headers[{header.name}].secretRef", header.name.lower(), header.secret_ref


#: Rules over the fields of the section.
TELEMETRY_RULES = (
    {
        "rule": "has(self.endpoint) || !has(self.traces) && !self.metrics",
        "message": "spec.telemetry: traces and metrics need an endpoint",
    },
    {
        "rule": "!has(self.caFile) || has(self.endpoint) && self.endpoint.startsWith('https://')",
        "message": "spec.telemetry: caFile is for an endpoint with https",
    },
    {
        "rule": "self.headers.size() == 0 || has(self.endpoint) &&"
        " self.endpoint.matches('^(https://|http://(127\\\\.0\\\\.0\\\\.1|localhost)([:/]|$))')",
        "message": "spec.telemetry: headers are for an endpoint with https, or on loopback",
    },
    {
        "rule": "self.headers.all(h, self.headers.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",
        "message": "spec.telemetry: a header is named once, in whatever case",
    },
    {
        "rule": "self.headers.all(h, !(h.name.lowerAscii() in ['host', 'content-length', 'content-type',"
        " 'content-encoding', 'transfer-encoding', 'connection']))",
        "message": "spec.telemetry: the exporter writes this header itself",
    },
)
