"""What a file and a manifest say alike of the section `ledger`: how exchanges are recorded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofgate_schema.annotations import Kubernetes
from proofgate_schema.fields import WHOLE_NUMBER
from proofgate_schema.payloads import Payloads
from proofgate_schema.section import Section


class Rotation(Section):
    """When a worker's log ends and its next one begins, while it serves. No request notices."""

    bytes: Annotated[int, Field(ge=1 << 20, le=1 << 40)] = 1 << 30
    """Most bytes of records in a log: what a restart reads at most, and the unit in which evidence can be
    moved away."""
    seconds: Annotated[
        float,
        Field(ge=1, le=31_622_400, allow_inf_nan=False),
        WHOLE_NUMBER,
        Kubernetes("the retention job counts days in whole seconds", {"type": "integer", "minimum": 60}),
    ] = 86_400.0
    """How long a log lasts at most, in seconds: up to 366 days."""


class Ledger(Section):
    """The record of every exchange. Where it is kept, and with which keys, each side says for itself."""

    durability: Literal["Written", "Synced"] = "Written"
    """Written: in the page cache before a byte leaves; survives kill -9. Synced: on disk; survives power
    loss."""
    checkpoint_interval_seconds: Annotated[
        float,
        Field(ge=0.01, le=3600, allow_inf_nan=False),
        WHOLE_NUMBER,
        Kubernetes("whole seconds", {"type": "integer", "minimum": 1}),
    ] = 1.0
    """Seconds between signed checkpoints while records arrive."""
    rotation: Rotation = Rotation()
    """When a worker's log ends and its next one begins. A change replaces the workers."""
    payloads: Payloads | None = None
    """Whether requests and answers are stored, and how. Absent: only where a plan or a tenant says so. It
    replaces the workers only when the first may have any stored, or nobody any more."""
