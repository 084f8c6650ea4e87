"""The part of the spec that says how long records are kept, and what must stay whatever that says. A
retention job carries it out; workers do not notice it."""

from typing import Annotated, Any

from proofgate_schema.fields import TenantName
from pydantic import Field

from proofgate_operator.api.access import Time
from proofgate_operator.api.auditor import AuditorStorage, storage_rules
from proofgate_operator.api.fields import ResourceName, Section, keyed_by, rules
from proofgate_operator.api.ledger import SigningKeyRef

#: Five fields, or a word. What no pattern tells, the API server does of a CronJob.
_SCHEDULE = (
    r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*/,?-]+( [0-9A-Za-z*/,?-]+){4})$"
)
#: One line of text.
_LINE = r"^[^\x00-\x1f\x7f-\x9f]+$"
_REQUEST_ID = r"^[A-Za-z0-9._:-]+$"

Line = Annotated[str, Field(min_length=1, max_length=128, pattern=_LINE)]
Days = Annotated[int, Field(ge=1, le=36_500)]


class TenantRetention(Section):
    """How long what is of one tenant is kept."""

    name: TenantName
    """Name of the tenant, as records have it: NAMESPACE/NAME of a GatewayTenant. It need not be there any
    more."""
    minimum_days: Days | None = None
    """Its records stay at least for so long, and logs that hold any of them, also beyond everybody's
    maximum."""
    maximum_days: Days | None = None
    """After which the salts of its exchanges are destroyed: what was said tells nothing any more. The
    records stay until their log goes."""


class Retention(Section):
    """How long records are kept, in days."""

    minimum_days: Annotated[int, Field(ge=0, le=36_500)] = 0
    """All records stay at least for so long."""
    maximum_days: Days | None = None
    """Logs whose newest record is older are removed, under tombstones. Absent: none is."""
    tenants: Annotated[
        tuple[
            Annotated[
                TenantRetention,
                Field(
                    json_schema_extra=rules(
                        {
                            "rule": "has(self.minimumDays) || has(self.maximumDays)",
                            "message": "spec.keeping.retention.tenants: a tenant has minimumDays, or"
                            " maximumDays, or both",
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
        Field(max_length=128, json_schema_extra=keyed_by("name")),
    ] = ()
    """Tenants of which it is otherwise."""


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
    """What must stay: the records that are all of what it gives, every log that holds one of them, and every
    salt. Nothing overrides it."""

    name: ResourceName
    """Its name. Of one that is over, it may be given again."""
    tenant: TenantName | None = None
    """What is of this tenant, NAMESPACE/NAME of a GatewayTenant. It need not be there any more."""
    id: Annotated[str | None, Field(min_length=1, max_length=128, pattern=_REQUEST_ID)] = None
    """What is of the exchange with this request id."""
    since: Time | None = None
    """What is of this time or later."""
    until: Time | None = None
    """What is of this time or earlier."""
    all: bool = False
    """True: everything."""
    reason: Line
    """Why."""
    reference: Line | None = None
    """The case or ticket that it is for; signed with it as `ticket`."""
    released: Line | None = None
    """Why it is over: set, it holds no longer. One that is taken out of the manifest without it holds on."""


_HOLD_RULES = (
    {
        "rule": "self.all != (has(self.tenant) || has(self.id) || has(self.since) || has(self.until))",
        "message": "spec.keeping.holds: a hold has all: true, or any of tenant, id, since and until",
    },
    {
        "rule": "!has(self.since) || !has(self.until) || self.since <= self.until",
        "message": "spec.keeping.holds: since is later than until",
    },
    {
        "rule": " && ".join(
            f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"
            for name in ("tenant", "id", "since", "until")
        ),
        "message": "spec.keeping.holds: the scope of a hold is immutable: release it, and add a "
        "hold with another name",
    },
)


class Keeping(Section):
    """How long records are kept, and what must stay."""

    signing_key_secret_ref: SigningKeyRef
    """Entry of a Secret with the retention key, as `proofgate keygen` writes it, which signs what goes.
    Its name may be neither the ledger's nor the auditor's, nor above or below either. The auditor of the
    gateway knows it by itself."""
    storage: Annotated[
        AuditorStorage, Field(json_schema_extra=rules(*storage_rules("spec.keeping.storage")))
    ] = AuditorStorage()
    """Where the holds are kept: a claim of their own, which no worker mounts. Back it up."""
    schedule: Annotated[str, Field(min_length=6, max_length=64, pattern=_SCHEDULE)] = "30 2 * * *"
    """When it is carried out, as cron has it, in UTC. A run that takes longer goes on, and the next one is
    left out."""
    suspend: bool = False
    """True: nothing is removed or erased, and holds are not brought in, until it is false again."""
    retention: Annotated[Retention, Field(json_schema_extra=rules(*_RETENTION_RULES))] = Retention()
    """How long."""
    holds: Annotated[
        tuple[Annotated[Hold, Field(json_schema_extra=rules(*_HOLD_RULES))], ...],
        Field(max_length=32, json_schema_extra=keyed_by("name")),
    ] = ()
    """What must stay whatever retention says. The retention job's next run brings them in before it removes
    anything."""


#: Rules over the retention job and the rest of the spec.
KEEPING_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.keeping) || self.ledger.volume.mode == 'Shared'",
        "fieldPath": ".keeping",
        "message": "spec.keeping needs spec.ledger.volume.mode Shared: with a volume for each worker no other"
        " pod can mount them all",
    },
    {
        "rule": "!has(self.keeping) || !self.keeping.holds.exists(h, !has(h.released)) ||"
        " self.ledger.volume.retainPolicy == 'Retain'",
        "fieldPath": ".keeping.holds",
        "message": "spec.keeping.holds need spec.ledger.volume.retainPolicy Retain, or held records "
        "are deleted with the gateway",
    },
    {
        "rule": "!has(self.keeping) || !has(self.keeping.storage.existingClaim) ||"
        " !has(self.ledger.volume.existingClaim) ||"
        " self.keeping.storage.existingClaim != self.ledger.volume.existingClaim",
        "fieldPath": ".keeping.storage.existingClaim",
        "message": "spec.keeping.storage.existingClaim is the ledger's volume: its writers could"
        " release every hold",
    },
)
