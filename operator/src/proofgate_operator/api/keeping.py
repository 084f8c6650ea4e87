"""The section `keeping`: how long records are kept, and holds that override this. A retention job executes
it; workers are not affected."""

from typing import Annotated, Any

from proofgate_schema.fields import TenantName
from pydantic import Field

from proofgate_operator.api.access import Time
from proofgate_operator.api.auditor import AuditorStorage, storage_rules
from proofgate_operator.api.fields import ResourceName, Section, cel_rules, list_map_key
from proofgate_operator.api.ledger import SigningKeyRef

#: A cron schedule: five fields, or a keyword. The API server validates it further in the CronJob.
_SCHEDULE = (
    r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*/,?-]+( [0-9A-Za-z*/,?-]+){4})$"
)
#: One line of text.
_LINE = r"^[^\x00-\x1f\x7f-\x9f]+$"
_REQUEST_ID = r"^[A-Za-z0-9._:-]+$"

SingleLine = Annotated[str, Field(min_length=1, max_length=128, pattern=_LINE)]
Days = Annotated[int, Field(ge=1, le=36_500)]


class TenantRetention(Section):
    """Retention of one tenant's records."""

    name: TenantName
    """Name of the tenant in records; NAMESPACE/NAME for a GatewayTenant. The tenant may already be
    deleted."""
    minimum_days: Days | None = None
    """Minimum days for which the tenant's records are kept. Logs that contain such records are also kept,
    even beyond the general maximumDays."""
    maximum_days: Days | None = None
    """Days after which the salts of the tenant's exchanges are destroyed, so that the commitments can no
    longer be opened. The records stay until their log is removed."""


class Retention(Section):
    """Retention periods of records, in days."""

    minimum_days: Annotated[int, Field(ge=0, le=36_500)] = 0
    """Minimum days for which all records are kept."""
    maximum_days: Days | None = None
    """Days after which a log is removed, counted from its newest record; a tombstone replaces it. Absent: no
    log is removed."""
    tenants: Annotated[
        tuple[
            Annotated[
                TenantRetention,
                Field(
                    json_schema_extra=cel_rules(
                        {
                            "rule": "has(self.minimumDays) || has(self.maximumDays)",
                            "message": "spec.keeping.retention.tenants: a tenant must have minimumDays, "
                            "maximumDays, or both",
                        },
                        {
                            "rule": "!has(self.minimumDays) || !has(self.maximumDays) ||"
                            " self.minimumDays <= self.maximumDays",
                            "message": "spec.keeping.retention.tenants: a tenant's maximumDays must be at"
                            " least its minimumDays",
                        },
                    )
                ),
            ],
            ...,
        ],
        Field(max_length=128, json_schema_extra=list_map_key("name")),
    ] = ()
    """Tenants with their own retention."""


_RETENTION_RULES = (
    {
        "rule": "!has(self.maximumDays) || self.maximumDays >= self.minimumDays",
        "fieldPath": ".maximumDays",
        "message": "spec.keeping.retention.maximumDays must be at least minimumDays",
    },
    {
        "rule": "self.tenants.all(t, !has(t.minimumDays) || t.minimumDays >= self.minimumDays)",
        "fieldPath": ".tenants",
        "message": "spec.keeping.retention.tenants: no tenant's minimumDays may be less than the general "
        "minimumDays: a log has records of many tenants and is removed as a whole",
    },
    {
        "rule": "self.tenants.all(t, !has(t.maximumDays) || t.maximumDays >= self.minimumDays)",
        "fieldPath": ".tenants",
        "message": "spec.keeping.retention.tenants: a tenant's maximumDays must be at least the "
        "general minimumDays",
    },
    {
        "rule": "!has(self.maximumDays) ||"
        " self.tenants.all(t, !has(t.maximumDays) || t.maximumDays <= self.maximumDays)",
        "fieldPath": ".tenants",
        "message": "spec.keeping.retention.tenants: a tenant's maximumDays may not be more than the general "
        "maximumDays, after which whole logs are removed",
    },
)


class Hold(Section):
    """A hold: records that match all of its fields are kept, together with their salts and with every log
    that contains such a record. Nothing overrides a hold."""

    name: ResourceName
    """Name of the hold. The name of a released hold can be used again."""
    tenant: TenantName | None = None
    """Tenant whose records are held; NAMESPACE/NAME for a GatewayTenant. The tenant may already be
    deleted."""
    id: Annotated[str | None, Field(min_length=1, max_length=128, pattern=_REQUEST_ID)] = None
    """Request id of the exchange that is held."""
    since: Time | None = None
    """Start of the time range that is held, inclusive."""
    until: Time | None = None
    """End of the time range that is held, inclusive."""
    all: bool = False
    """True: all records are held."""
    reason: SingleLine
    """Reason for the hold."""
    reference: SingleLine | None = None
    """Case or ticket of the hold. It is signed with the hold, as `ticket`."""
    released: SingleLine | None = None
    """Reason for the release. If this field is set, the hold is released. A hold that is deleted from the
    manifest without this field stays active."""


_HOLD_RULES = (
    {
        "rule": "self.all != (has(self.tenant) || has(self.id) || has(self.since) || has(self.until))",
        "message": "spec.keeping.holds: a hold must have either all: true, or at least one of tenant, id, "
        "since and until",
    },
    {
        "rule": "!has(self.since) || !has(self.until) || self.since <= self.until",
        "message": "spec.keeping.holds: since must not be later than until",
    },
    {
        "rule": " && ".join(
            f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"
            for name in ("tenant", "id", "since", "until")
        ),
        "message": "spec.keeping.holds: the scope of a hold is immutable: release the hold, and add a hold "
        "with another name",
    },
)


class Keeping(Section):
    """Retention periods of records, and holds that override them."""

    signing_key_secret_ref: SigningKeyRef
    """Entry of a Secret with the retention key, as `proofgate keys generate` writes it. The key signs
    removals, erasures, holds and releases. The key's name must not be the name of the ledger or the auditor,
    nor a path above or below either name. The gateway's auditor trusts this key automatically."""
    storage: Annotated[
        AuditorStorage, Field(json_schema_extra=cel_rules(*storage_rules("spec.keeping.storage")))
    ] = AuditorStorage()
    """Volume for the holds: a separate claim that no worker mounts. Back up this volume."""
    schedule: Annotated[str, Field(min_length=6, max_length=64, pattern=_SCHEDULE)] = "30 2 * * *"
    """Cron schedule of the retention job, in UTC. If a run takes longer than the interval, the run continues
    and the next run is skipped."""
    suspend: bool = False
    """True: nothing is removed or erased, and new holds are not applied, until this field is false again."""
    retention: Annotated[Retention, Field(json_schema_extra=cel_rules(*_RETENTION_RULES))] = Retention()
    """Retention periods."""
    holds: Annotated[
        tuple[Annotated[Hold, Field(json_schema_extra=cel_rules(*_HOLD_RULES))], ...],
        Field(max_length=32, json_schema_extra=list_map_key("name")),
    ] = ()
    """Legal holds: records that are kept regardless of the retention periods. The next run of the retention
    job applies new holds before it removes anything."""


#: Rules over the section and the rest of the spec.
KEEPING_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.keeping) || self.ledger.volume.mode == 'Shared'",
        "fieldPath": ".keeping",
        "message": "spec.keeping needs spec.ledger.volume.mode Shared, because no pod can mount the "
        "separate volumes of all workers",
    },
    {
        "rule": "!has(self.keeping) || !self.keeping.holds.exists(h, !has(h.released)) ||"
        " self.ledger.volume.retainPolicy == 'Retain'",
        "fieldPath": ".keeping.holds",
        "message": "spec.keeping.holds need spec.ledger.volume.retainPolicy Retain; otherwise held records "
        "are deleted with the gateway",
    },
    {
        "rule": "!has(self.keeping) || !has(self.keeping.storage.existingClaim) ||"
        " !has(self.ledger.volume.existingClaim) ||"
        " self.keeping.storage.existingClaim != self.ledger.volume.existingClaim",
        "fieldPath": ".keeping.storage.existingClaim",
        "message": "spec.keeping.storage.existingClaim must not be the ledger's claim, because "
        "otherwise every process that can write to the ledger's volume could release every hold",
    },
)
