"""The part of the spec that says where the auditor sends every exchange that it has verified."""

from typing import Annotated, Any, Literal

from proofgate_schema.urls import PORT
from pydantic import Field

from proofgate_operator.api.fields import SET, Cidr, ConfigMapKeyRef, SecretKeyRef, Section

_URL = rf"^otlp\+https?://[A-Za-z0-9.-]+{PORT}(/[A-Za-z0-9._~/-]*)?$"

#: Rules over the fields of one sink.
SINK_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.caSecretRef) || !has(self.caConfigMapRef)",
        "message": "spec.auditor.siem: set caSecretRef or caConfigMapRef, not both",
    },
    {
        "rule": "self.allowPlain || self.url.startsWith('otlp+https://')",
        "message": "spec.auditor.siem: use otlp+https, or allowPlain in a trusted network",
    },
)


class SinkEgress(Section):
    """Where the auditor may connect to reach the sink, by address."""

    allow: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=32, json_schema_extra=SET)]
    """Ranges of addresses, for example 192.0.2.0/24: what the host's name resolves to must be in one."""


class Sink(Section):
    """Who gets every exchange that the auditor has verified."""

    url: Annotated[str, Field(max_length=512, pattern=_URL)]
    """otlp+https://HOST[:PORT][/PATH], or otlp+http without TLS. Unique."""
    format: Literal["Attributes", "OCSF", "CEF"] = "Attributes"
    """What a log record has: Attributes of OpenTelemetry, or as its body a line of OCSF 1.9 or of CEF."""
    authorization_secret_ref: SecretKeyRef | None = None
    """The value of the header field Authorization, in a Secret. A change is used within a minute or
    two."""
    allow_plain: bool = False
    """True: without TLS, in a network that you trust."""
    egress: SinkEgress | None = None
    """Where it is, in the auditor's network policy. Absent: anywhere, at the port of the URL."""
    ca_secret_ref: SecretKeyRef | None = None
    """Certificates of the authorities to trust in the place of the system's, PEM, in a Secret."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """The same in a ConfigMap."""
