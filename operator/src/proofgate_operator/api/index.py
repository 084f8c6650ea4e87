"""The part of the spec that has the auditor keep an index of exchanges."""

from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import SecretKeyRef, Section

#: Memory of an auditor with an index: SQLite's caches of the days that are written and asked for, besides.
INDEX_MEMORY = "512Mi"


class Index(Section):
    """An index of the exchanges that the auditor has accepted, on the auditor's own volume. It is not
    evidence, and can always be rebuilt."""

    enabled: bool = True
    """False: the index is not updated and not served. Its data stays, and it continues when it is enabled
    again."""
    retention_days: Annotated[int | None, Field(ge=1, le=36_500)] = None
    """Days for which the index keeps exchanges. Older ones are removed from it permanently; the ledger does
    not change. Absent: no limit. The index takes about 150 bytes of `storage.size` for each exchange, leaves
    384Mi free, and falls behind when no more space is left."""
    readers_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret that lists the readers who may query the index at the auditor's port: a JSON object
    with the SHA-256 of each reader's key, as for `--readers`. An invalid entry is not rolled out
    (ReadersInvalid), and the previous readers stay. A change is used within about two minutes. Absent: no
    readers."""
