"""The section `limits`: bytes and connections of clients, and memory of a worker."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proofgate_schema.annotations import KubernetesOverride, WorkerOnlyField
from proofgate_schema.section import Section

#: Bytes of a worker's memory for one connection, without its head: docs/how-to/size-a-worker.md.
CONNECTION_BYTES = 16 << 10


class Limits(Section):
    """Limits on the bytes that a client may send, on the clients of a worker, and on the memory of a worker
    for their exchanges."""

    head_bytes: Annotated[
        int,
        Field(ge=1024, le=1 << 20),
        KubernetesOverride("HAProxy buffers the whole head twice", {"maximum": 64 << 10}),
    ] = 16 << 10
    """Maximum bytes of a request's head. A worker reserves this much memory for each of its connections, and
    HAProxy reserves four times as much. On Kubernetes, a change replaces HAProxy's pods."""
    body_bytes: Annotated[
        int,
        Field(ge=1024, le=1 << 30),
        KubernetesOverride("the operator derives the default from spec.worker.memory", {"default": None}),
    ] = 32 << 20
    """Maximum bytes of a request's body, and of a response that must be buffered. On Kubernetes,
    the part of spec.worker.memory for bodies and responses must be at least nine times this value.
    Absent on Kubernetes: a ninth of the memory for bodies and responses, at most 32 MiB."""
    upload_bytes: Annotated[int, Field(ge=1024, le=1 << 40)] = 512 << 20
    """Maximum bytes of a form with files. Such a form is streamed and not buffered."""
    connections: Annotated[
        int,
        Field(ge=1, le=1 << 20),
        KubernetesOverride(
            "HAProxy's pods share the connections, and each connection takes memory",
            {"minimum": 256, "maximum": 65_536},
        ),
    ] = 4096
    """Maximum number of client connections to one worker at a time. Each connection takes 16 KiB of the
    worker's memory, plus headBytes. Each HAProxy pod accepts an eighth of this number for each of its
    server lines: the number of workers, rounded up to a power of two, and at least 8. Fixed for
    the life of a worker. On Kubernetes, a change replaces the workers and HAProxy's pods."""
    buffered_bytes: Annotated[
        int, Field(ge=4096, le=1 << 40), WorkerOnlyField("the operator derives it from spec.worker.memory")
    ] = 192 << 20
    """Maximum bytes of memory that all exchanges take together: bodies, their texts and redacted copies,
    responses that are buffered for rules, and 32 KiB for each exchange. The value must be at least four times
    `bodyBytes`."""

    @property
    def connection_memory(self) -> int:
        """The bytes of a worker's memory for its connections."""
        return self.connections * (CONNECTION_BYTES + self.head_bytes)
