"""The fields of the section `ledger` that the gateway's file and a manifest share: how exchanges are
recorded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofgate_schema.annotations import KubernetesOverride
from proofgate_schema.fields import WHOLE_NUMBER
from proofgate_schema.payloads import Payloads
from proofgate_schema.section import Section


class Rotation(Section):
    """The size and age at which a worker closes its log and starts the next one. Requests are not
    affected."""

    bytes: Annotated[int, Field(ge=1 << 20, le=1 << 40)] = 1 << 30
    """Maximum bytes of records in a log. A restart reads at most this many bytes. Evidence can be moved away
    only in whole logs."""
    seconds: Annotated[
        float,
        Field(ge=1, le=31_622_400, allow_inf_nan=False),
        WHOLE_NUMBER,
        KubernetesOverride(
            "the retention job counts days in whole seconds", {"type": "integer", "minimum": 60}
        ),
    ] = 86_400.0
    """Maximum age of a log in seconds, up to 366 days."""


class Ledger(Section):
    """The record of every exchange. Each side has its own fields for the location and the keys."""

    durability: Literal["Written", "Synced"] = "Written"
    """Point at which a record counts as written. A request is not sent to a provider, and a response does not
    end, before its record is written. Written: the record is in the page cache, and survives kill -9. Synced:
    the record is on disk, and also survives a power loss."""
    checkpoint_interval_seconds: Annotated[
        float,
        Field(ge=0.01, le=3600, allow_inf_nan=False),
        WHOLE_NUMBER,
        KubernetesOverride("whole seconds", {"type": "integer", "minimum": 1}),
    ] = 1.0
    """Seconds between signed checkpoints while records arrive."""
    rotation: Rotation = Rotation()
    """Size and age at which a worker closes its log and starts the next one. A change replaces the
    workers."""
    payloads: Payloads | None = None
    """Storage of requests and responses. Absent: they are stored only for plans and tenants that set
    `payloads`. A change replaces the workers only if it starts or ends the storage of payloads for the whole
    gateway."""
    record_client_address: bool = False
    """Whether records contain the IP address of the client. This includes records of refused requests. The
    address is personal data in evidence: nothing erases it from a record, and it stays until the whole log is
    removed. False: no record has an address. A change does not replace workers."""
    record_end_user: bool = False
    """Whether records contain the end user as the request names it (`safety_identifier`, `user` or
    `metadata.user_id`), cut to 128 bytes. The name is personal data in evidence: nothing erases it from a
    record, and it stays until the whole log is removed. False: records have only the pseudonym, which is
    enough to find an end user's requests. A change does not replace workers."""
