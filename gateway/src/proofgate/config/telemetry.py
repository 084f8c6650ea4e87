"""The section `telemetry` as in the configuration file. Values of header fields are in separate files."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import proofgate_schema.telemetry
from proofgate_schema.fields import FilePath, TupleOf
from proofgate_schema.telemetry import ExportHeader
from proofgate_schema.urls import is_loopback
from pydantic import Field

from proofgate.config.document import FieldPath
from proofgate.config.problems import Findings, report_duplicates


class TelemetryHeader(ExportHeader):
    """A header field that is sent with each export, such as a token for the collector."""

    value_file: FilePath
    """File with the value, one line of at most 4096 characters. It is read for each export, so the value can
    be renewed."""


class Telemetry(proofgate_schema.telemetry.Telemetry):
    """The access log, and telemetry export by OpenTelemetry."""

    headers: Annotated[TupleOf[TelemetryHeader], Field(max_length=8)] = ()
    """Header fields that are sent to the collector; https only, or http on loopback."""


def check_telemetry(telemetry: Telemetry, findings: Findings) -> None:
    """Reports fields of the section that contradict each other."""
    url = urlsplit(telemetry.endpoint or "")
    exports = telemetry.traces is not None or telemetry.metrics
    if exports and telemetry.endpoint is None:
        message = "set endpoint: traces and metrics go to a collector"
        findings.report("config_telemetry", ("telemetry", "endpoint"), message)
    if telemetry.ca_file is not None and url.scheme != "https":
        message = "this field needs an endpoint with https: remove the field, or use https"
        findings.report("config_telemetry", ("telemetry", "caFile"), message)
    headers: FieldPath = ("telemetry", "headers")
    if telemetry.headers and url.scheme != "https" and not is_loopback(url.hostname or ""):
        message = "the headers would be sent unencrypted: use an endpoint with https"
        findings.report("config_telemetry", headers, message)
    report_duplicates((header.name.lower() for header in telemetry.headers), headers, "name", findings)
    attributes = (attribute.name for attribute in telemetry.resource_attributes)
    report_duplicates(attributes, ("telemetry", "resourceAttributes"), "name", findings)
