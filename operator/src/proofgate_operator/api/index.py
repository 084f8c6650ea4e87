"""The section `index`, which makes the auditor keep an index of exchanges."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from proofgate_operator.api.export_key import ExportKey
from proofgate_operator.api.fields import SecretKeyRef, Section, cel_rules
from proofgate_operator.api.oidc import OIDC_RULES, Oidc

#: Additional memory of an auditor with an index, for SQLite's caches of the days that are written and
#: queried.
INDEX_MEMORY = "512Mi"


class Index(Section):
    """An index of the exchanges that the auditor has accepted, on the auditor's own volume. It is not
    evidence, and can always be rebuilt."""

    enabled: bool = True
    """False: the index is neither updated nor served. Its data stays, and the index continues when it is
    enabled again."""
    retention_days: Annotated[int | None, Field(ge=1, le=36_500)] = None
    """Days for which the index keeps exchanges. Older exchanges are removed from the index permanently; the
    ledger does not change. Absent: no limit. The index takes 150 to 260 bytes of `storage.size` for each
    exchange. The index leaves 384Mi of the volume free, and falls behind when no more space is left. With
    `ledger.volume.mode: PerWorker`, the auditor also copies the workers' logs of these days to its volume,
    about 1 KiB for each exchange. These copies leave 512Mi of the volume free."""
    readers_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret that lists the readers who may query the index at the auditor's port: a JSON object
    with the SHA-256 of each reader's key, as for `--readers`. An invalid entry is not rolled out
    (ReadersInvalid), and the previous readers stay. A change is used within about two minutes. Absent: no
    reader has a key."""
    oidc: Annotated[Oidc | None, Field(json_schema_extra=cel_rules(*OIDC_RULES))] = None
    """Sign-in of readers with an OpenID provider. Absent: readers need keys."""
    export_key: ExportKey | None = None
    """A key that signs the exports that readers download. Absent: the manifests of exports are not signed."""

    @property
    def has_readers(self) -> bool:
        """Whether the index has any readers, by key or by group."""
        return self.readers_secret_ref is not None or self.oidc is not None

    def secrets(self) -> Iterator[str]:
        """Yield the names of the Secrets that the index needs."""
        if self.readers_secret_ref is not None:
            yield self.readers_secret_ref.name
        if self.oidc is not None:
            yield from (reference.name for _, reference in self.oidc.secrets())
        if self.export_key is not None and self.export_key.secret_ref is not None:
            yield self.export_key.secret_ref.name
