"""The section `siem`: the sinks to which the auditor sends every verified exchange."""

from typing import Annotated, Any, Literal

from proofgate_schema.urls import PORT
from pydantic import Field

from proofgate_operator.api.fields import LIST_TYPE_SET, Cidr, ConfigMapKeyRef, SecretKeyRef, Section

_URL = rf"^otlp\+https?://[A-Za-z0-9.-]+{PORT}(/[A-Za-z0-9._~/-]*)?$"

#: Rules over several fields of one sink.
SINK_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.caSecretRef) || !has(self.caConfigMapRef)",
        "message": "spec.auditor.siem: set caSecretRef or caConfigMapRef, not both",
    },
    {
        "rule": "self.allowPlain || self.url.startsWith('otlp+https://')",
        "message": "spec.auditor.siem: use otlp+https, or set allowPlain in a trusted network",
    },
)


class SinkEgress(Section):
    """Addresses to which the auditor may connect to reach the sink."""

    allow: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=32, json_schema_extra=LIST_TYPE_SET)]
    """Allowed address ranges, for example 192.0.2.0/24. The host's name must resolve to an address in one of
    them."""


class Sink(Section):
    """A sink to which the auditor sends every exchange that it has verified."""

    url: Annotated[str, Field(max_length=512, pattern=_URL)]
    """URL of the sink: otlp+https://HOST[:PORT][/PATH], or otlp+http without TLS. Unique."""
    format: Literal["Attributes", "OCSF", "CEF"] = "Attributes"
    """Form of an event in its log record: OpenTelemetry attributes, or a body with OCSF 1.9 or CEF."""
    authorization_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret with the value of the header field Authorization. A change is used within about two
    minutes. Absent: the header is not sent."""
    allow_plain: bool = False
    """True: the URL may use otlp+http, without TLS. Only for a trusted network."""
    egress: SinkEgress | None = None
    """Addresses of the sink in the auditor's network policy. Absent: any address, at the URL's port."""
    ca_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret with CA certificates (PEM) to trust instead of the system's."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """Entry of a ConfigMap with CA certificates (PEM), instead of caSecretRef."""
