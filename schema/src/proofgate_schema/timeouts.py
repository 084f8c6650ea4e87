"""The section `timeouts`, and a provider's own timeouts."""

from __future__ import annotations

from typing import Annotated

from proofgate_schema.annotations import KubernetesOverride
from proofgate_schema.fields import Seconds, SecondsOrNone
from proofgate_schema.section import Section


class Timeouts(Section):
    """Time limits for clients and providers, in seconds."""

    client_head_seconds: Seconds = 10.0
    """Maximum seconds for a request's head, from its first byte. HAProxy applies this limit to the first
    request of a connection, including the wait for its first byte."""
    client_body_seconds: Seconds = 30.0
    """Maximum seconds for a request's body. For a form with files, the limit applies to the part before the
    form is admitted, and then to the wait between bytes."""
    client_idle_seconds: Seconds = 75.0
    """Maximum seconds between two requests of a connection, and for one write to a client that does not
    read."""
    upstream_connect_seconds: Seconds = 5.0
    """Maximum seconds to connect to a provider: DNS, TCP and TLS, over all of its addresses."""
    upstream_first_byte_seconds: Seconds | None = None
    """Maximum seconds until a provider starts its response: to connect, send the whole request, and receive
    the response's head. If absent, the same as upstreamResponseSeconds."""
    upstream_response_seconds: Seconds = 600.0
    """Maximum seconds between bytes of a provider's response. The default is that of the official clients,
    because reasoning models can be silent for minutes."""
    answer_seconds: Seconds = 3600.0
    """Maximum seconds from a request's head to the end of its response, even if data keeps arriving."""
    heartbeat_seconds: SecondsOrNone = 15.0
    """Interval in seconds at which the gateway sends a comment (`: hb`) to the client of a silent stream, so
    that intermediaries keep the connection open. 0: never."""
    connection_age_seconds: Seconds = 300.0
    """Age in seconds, varied by up to a tenth, after which a client connection is closed with its next
    response. The client then reconnects to the worker that currently serves its tenant. In this way,
    connections also leave an HAProxy that is being replaced."""
    drain_seconds: Seconds = 30.0
    """Seconds after lameDuckSeconds in which in-flight exchanges of a stopping worker can finish."""
    lame_duck_seconds: Annotated[
        SecondsOrNone,
        KubernetesOverride("HAProxy needs this time to stop sending new connections", {"minimum": 3}),
    ] = 3.0
    """Seconds for which a stopping worker still accepts connections, so that load balancers can stop sending
    new ones. Then drainSeconds begin."""


class ProviderTimeouts(Section):
    """Time limits for one provider, in seconds. Each limit replaces the value in `timeouts`."""

    connect_seconds: Seconds | None = None
    """Maximum seconds to connect (TCP and TLS), instead of upstreamConnectSeconds."""
    first_byte_seconds: Seconds | None = None
    """Maximum seconds until the response starts, instead of upstreamFirstByteSeconds."""
    idle_seconds: Seconds | None = None
    """Maximum seconds between bytes of a response, instead of upstreamResponseSeconds."""
    keep_alive_seconds: Seconds | None = None
    """Seconds for which an idle connection is kept for the next request. Set it below the provider's own
    keep-alive time; otherwise a request can use a connection that the provider is closing. Absent: 30."""
