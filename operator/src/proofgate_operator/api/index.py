"""The part of the spec that has the auditor keep an index of exchanges."""

from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import SecretKeyRef, Section

#: Memory of an auditor with an index: SQLite's caches of the days that are written and asked for, besides.
INDEX_MEMORY = "512Mi"


class Index(Section):
    """An index of the exchanges in what the auditor has accepted, on the auditor's own volume. It proves
    nothing by itself, and can always be made anew."""

    enabled: bool = True
    """False: none is kept and nobody is answered. What there is of it stays, and goes on when it is enabled
    again."""
    retention_days: Annotated[int | None, Field(ge=1, le=36_500)] = None
    """Days of exchanges that it keeps; older ones are removed from it for good. Absent: all. The ledger
    stays as it is. It takes about 150 bytes of `storage.size` for each exchange, leaves 384Mi free, and is
    behind while there is no more."""
    readers_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret that says who may ask over the auditor's port: a JSON object with the SHA-256 of each
    reader's key, as `--readers` takes it. One that cannot be used is not rolled out (ReadersInvalid): the
    readers before stay. A change of it is used within a minute or two. Absent: nobody may."""
