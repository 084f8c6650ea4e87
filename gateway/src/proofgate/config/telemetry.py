"""What is told of exchanges beyond the ledger and the metrics: the access log, and OpenTelemetry."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from proofgate_schema.fields import Listed
from proofgate_schema.section import Section
from proofgate_schema.telemetry import Traces
from pydantic import AfterValidator

from proofgate.config.fields import BaseURL, FilePath, is_loopback
from proofgate.config.problems import Findings

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
#: Fields of a request's head that the exporter writes itself.
_OWN_HEADERS = (
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
)


def _header_name(text: str) -> str:
    if not _HEADER.fullmatch(text) or text.lower() in _OWN_HEADERS:
        raise ValueError("write the name of a header field, such as Authorization, of at most 64 characters")
    return text


def _resource(attributes: dict[str, str]) -> dict[str, str]:
    if len(attributes) > 32:
        raise ValueError("there are at most 32 attributes")
    for name, value in attributes.items():
        if not re.fullmatch(r"[a-z][a-z0-9_.]{0,127}", name) or len(value) > 256:
            raise ValueError(
                "a name has lower-case letters, digits, '.' and '_', at most 128, and a value at most 256"
                " characters"
            )
    return attributes


class TelemetryHeader(Section):
    """A header field that goes with each export, such as a token of the collector's."""

    name: Annotated[str, AfterValidator(_header_name)]
    """Its name."""
    value_file: FilePath
    """Its value, one line of at most 4096 characters; read for each export, so it can be renewed."""


class Telemetry(Section):
    """What is told of exchanges beyond the ledger and the metrics. By default nothing is."""

    access_log: Literal["None", "Errors", "All"] = "None"
    """Which exchanges have a line of JSON on standard output. `Errors`: those that did not end well, and
    those whose answer has a status from 400 on."""
    endpoint: BaseURL | None = None
    """Base URL of a collector that takes OTLP over HTTP; `/v1/traces` and `/v1/metrics` are appended."""
    headers: Listed[TelemetryHeader] = ()
    """Header fields for the collector; https only, or http on loopback."""
    ca_file: FilePath | None = None
    """Certificates to trust in place of the usual roots, PEM; https only."""
    traces: Traces | None = None
    """Without this section there are none."""
    metrics: bool = False
    """Whether the collector gets metrics, every 15 s."""
    semantic_conventions: Literal["Latest", "V1_41"] = "Latest"
    """Which names of OpenTelemetry's conventions for generative AI are used: those of today, or those of
    version 1.41, which more dashboards know."""
    resource_attributes: Annotated[dict[str, str], AfterValidator(_resource)] = {}  # noqa: RUF012 - pydantic copies it
    """Attributes of everything that is exported, such as `deployment.environment.name`, at most 32."""


def check_telemetry(telemetry: Telemetry, findings: Findings) -> None:
    """Reports what of the section contradicts something else in it."""
    url = urlsplit(telemetry.endpoint or "")
    exports = telemetry.traces is not None or telemetry.metrics
    if exports and telemetry.endpoint is None:
        message = "set endpoint: traces and metrics go to a collector"
        findings.report("config_telemetry", ("telemetry", "endpoint"), message)
    if telemetry.ca_file is not None and url.scheme != "https":
        message = "it is for an endpoint with https: remove it, or use https"
        findings.report("config_telemetry", ("telemetry", "caFile"), message)
    if telemetry.headers and url.scheme != "https" and not is_loopback(url.hostname or ""):
        message = "they would go over the network in clear: use an endpoint with https"
        findings.report("config_telemetry", ("telemetry", "headers"), message)
    names = [header.name.lower() for header in telemetry.headers]
    for position, name in enumerate(names):
        if name in names[:position]:
            message = f"{name} is already defined: remove one"
            findings.report("config_duplicate_name", ("telemetry", "headers", position, "name"), message)
