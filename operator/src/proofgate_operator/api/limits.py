"""The part of the spec that says how much clients may send, as a frozen model."""

from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import Section

#: Bytes of a worker's memory for one connection besides a head that is being read: docs/operations.md,
#: "Memory".
CONNECTION_BYTES = 16 << 10


class Limits(Section):
    """How much one client may send, in bytes, and how many clients a worker takes."""

    head_bytes: Annotated[int, Field(ge=1024, le=64 << 10)] = 16 << 10
    """Of one request's head. A worker keeps as much memory for each of its connections, and HAProxy four
    times as much. A change rolls HAProxy."""
    body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] | None = None
    """Of one request's body, and of one answer that has to be held. spec.worker.memory has to have nine
    times as much for bodies and answers. Absent: a ninth of what it has for them, at most 32 MiB."""
    upload_bytes: Annotated[int, Field(ge=1024, le=1 << 40)] = 512 << 20
    """Of one form with files, which passes without being held."""
    connections: Annotated[int, Field(ge=256, le=65_536)] = 4096
    """Of clients at one worker at the same time. Each takes memory of spec.worker.memory: 16 KiB and a head.
    HAProxy lets in as many as its workers take, and no more. A change rolls workers and HAProxy."""

    @property
    def connection_memory(self) -> int:
        """Bytes of a worker's memory that its connections take."""
        return self.connections * (CONNECTION_BYTES + self.head_bytes)
