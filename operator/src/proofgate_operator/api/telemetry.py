"""The section `telemetry` as a manifest defines it: values of header fields are in Secrets."""

from collections.abc import Iterator
from typing import Annotated

import proofgate_schema.telemetry
from proofgate_schema.fields import TupleOf, unique_by
from proofgate_schema.telemetry import EXPORTER_HEADERS, ExportHeader
from pydantic import Field

from proofgate_operator.api.fields import SecretKeyRef


class TelemetryHeader(ExportHeader):
    """A header field that is sent with each export."""

    secret_ref: SecretKeyRef
    """Entry of a Secret with the value: one line of printable ASCII, at most 4096 characters. The value is
    mounted into the workers and never copied. A new value in the entry is used within seconds; a reference to
    another entry rolls the workers."""


class Telemetry(proofgate_schema.telemetry.Telemetry):
    """The access log, and telemetry export by OpenTelemetry. Both are off by default."""

    headers: Annotated[TupleOf[TelemetryHeader], Field(max_length=8), unique_by("name")] = ()
    """Header fields that are sent to the collector."""

    def secrets(self) -> Iterator[tuple[str, str, SecretKeyRef]]:
        """Yield each Secret entry that it needs: its field, its file in workers, and its reference."""
        for header in self.headers:
            yield f"headers[{header.name}].secretRef", header.name.lower(), header.secret_ref


_RESERVED_NAMES = ", ".join(f"'{name}'" for name in EXPORTER_HEADERS)

#: Rules over several fields of the section.
TELEMETRY_RULES = (
    {
        "rule": "has(self.endpoint) || !has(self.traces) && !self.metrics",
        "message": "spec.telemetry: traces and metrics need an endpoint",
    },
    {
        "rule": "!has(self.caFile) || has(self.endpoint) && self.endpoint.startsWith('https://')",
        "message": "spec.telemetry: caFile needs an endpoint with https",
    },
    {
        "rule": "self.headers.size() == 0 || has(self.endpoint) &&"
        " self.endpoint.matches('^(https://|http://(127\\\\.0\\\\.0\\\\.1|localhost)([:/]|$))')",
        "message": "spec.telemetry: headers need an endpoint with https, or an endpoint on loopback",
    },
    {
        "rule": "self.headers.all(h, self.headers.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",
        "message": "spec.telemetry: each header may be listed once, regardless of case",
    },
    {
        "rule": f"self.headers.all(h, !(h.name.lowerAscii() in [{_RESERVED_NAMES}]))",
        "message": "spec.telemetry: headers must not contain a header that the exporter sets itself",
    },
)
