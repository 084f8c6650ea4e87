"""The section `ledger.payloads`: whether requests and answers are stored beside the log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from proofgate_schema.annotations import Kubernetes, WorkerOnly
from proofgate_schema.section import Section

PayloadMode = Literal["Committed", "Stored"]


class Payloads(Section):
    """Whether requests and answers are stored beside the log, sealed with keys of their tenants. `mode` and
    `maxBytes` may change while a worker runs; whether this section is there may not."""

    mode: PayloadMode = "Committed"
    """What holds for plans and tenants that say nothing else. Committed: records commit to requests and
    answers, and none is stored. Stored: they are stored too, which needs shred keys."""
    max_bytes: Annotated[
        int,
        Field(ge=1024, le=16 << 20),
        Kubernetes("half of the budgetBytes that the operator sets", {"maximum": 8 << 20}),
    ] = 1 << 20
    """Of one request or answer, in bytes. A longer one is not stored, and its record says so."""
    budget_bytes: Annotated[
        int, Field(ge=1 << 20, le=1 << 40), WorkerOnly("the operator takes it from spec.worker.memory")
    ] = 64 << 20
    """Of memory for bodies on their way to the volume, at least twice `maxBytes`, besides
    `limits.bufferedBytes`. While it is taken, tenants whose bodies are stored are refused. The volume must
    have as much free. Fixed for the life of a worker."""

    @model_validator(mode="after")
    def _fits(self) -> Payloads:
        if 2 * self.max_bytes > self.budget_bytes:
            raise ValueError("maxBytes is more than half of budgetBytes: a body might never fit")
        return self
