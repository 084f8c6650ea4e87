"""The section `timeouts`, and what a provider has in its place."""

from __future__ import annotations

from typing import Annotated

from proofgate_schema.annotations import Kubernetes
from proofgate_schema.fields import Seconds, SecondsOrNone
from proofgate_schema.section import Section


class Timeouts(Section):
    """How long each side may take, in seconds."""

    client_head_seconds: Seconds = 10.0
    """For a request's head, from its first byte. HAProxy waits as long for the first one of a connection, and
    for its first byte."""
    client_body_seconds: Seconds = 30.0
    """For all of a request's body. Of a form with files: for all that comes before it is admitted, and then
    for its next bytes."""
    client_idle_seconds: Seconds = 75.0
    """Between the requests of a connection, and for one write to a client that does not read."""
    upstream_connect_seconds: Seconds = 5.0
    """For the name, TCP and TLS of a provider, over all its addresses."""
    upstream_first_byte_seconds: Seconds | None = None
    """For a provider to begin its answer: connecting, taking the request whole and the answer's head
    together. Absent: as upstreamResponseSeconds."""
    upstream_response_seconds: Seconds = 600.0
    """For a provider's next bytes, once its answer has begun. As long as the official clients wait by
    default: reasoning models may be silent for minutes."""
    answer_seconds: Seconds = 3600.0
    """From a request's head to the end of its answer, however steadily that comes."""
    heartbeat_seconds: SecondsOrNone = 15.0
    """After so much silence in a stream, and again and again, its client gets a comment (`: hb`), so that
    nothing between the two takes the connection for dead. 0: never."""
    connection_age_seconds: Seconds = 300.0
    """Age at which a client's connection ends with its next answer, up to a tenth more or less: its client
    comes back where its tenant is served by then, and an HAProxy that is replaced gets rid of its
    connections."""
    drain_seconds: Seconds = 30.0
    """Time that open exchanges get to finish when a worker stops, after lameDuckSeconds."""
    lame_duck_seconds: Annotated[
        SecondsOrNone, Kubernetes("HAProxy needs that to send no more connections", {"minimum": 3})
    ] = 3.0
    """How long a worker that stops still accepts connections."""


class ProviderTimeouts(Section):
    """How long one provider may take, in seconds, each instead of what `timeouts` says for all."""

    connect_seconds: Seconds | None = None
    """For TCP and TLS, instead of upstreamConnectSeconds."""
    first_byte_seconds: Seconds | None = None
    """To begin an answer, instead of upstreamFirstByteSeconds."""
    idle_seconds: Seconds | None = None
    """Longest silence in the middle of an answer, instead of upstreamResponseSeconds."""
    keep_alive_seconds: Seconds | None = None
    """How long an idle connection is kept for the next request. Less than the provider keeps it, or a request
    may meet a connection that the provider is closing. Absent: 30."""
