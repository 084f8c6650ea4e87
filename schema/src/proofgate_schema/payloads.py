"""The section `ledger.payloads`: storage of requests and responses next to the log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from proofgate_schema.annotations import KubernetesOverride, WorkerOnlyField
from proofgate_schema.section import Section

PayloadMode = Literal["Committed", "Stored"]


class Payloads(Section):
    """Storage of requests and responses next to the log, encrypted with keys of their tenants. `mode` and
    `maxBytes` can change while a worker runs. The section itself cannot be added or removed while a worker
    runs."""

    mode: PayloadMode = "Committed"
    """Default for plans and tenants that set no `payloads`. Committed: records contain commitments to
    requests and responses, but the requests and responses are not stored. Stored: the requests and responses
    are also stored. This needs shred keys."""
    max_bytes: Annotated[
        int,
        Field(ge=1024, le=16 << 20),
        KubernetesOverride("the operator sets budgetBytes to twice this maximum", {"maximum": 8 << 20}),
    ] = 1 << 20
    """Maximum bytes of a request or response that is stored. A longer request or response is not stored, and
    its record says so."""
    budget_bytes: Annotated[
        int, Field(ge=1 << 20, le=1 << 40), WorkerOnlyField("the operator takes it from spec.worker.memory")
    ] = 64 << 20
    """Bytes of memory for bodies that wait to be written to the volume, at least twice `maxBytes`. They are
    in addition to `limits.bufferedBytes`. While this memory is full, requests of tenants with stored bodies
    are refused. The volume must have the same amount of free space. Fixed for the life of a worker."""

    @model_validator(mode="after")
    def _check_body_fits_budget(self) -> Payloads:
        if 2 * self.max_bytes > self.budget_bytes:
            raise ValueError("maxBytes is more than half of budgetBytes: a body might never fit")
        return self
