"""Reads the API keys of a GatewayTenant from its Secrets; keeps the last known keys while a Secret cannot be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proofgate_operator.api.tenant import TENANT_KIND, GatewayTenant
from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.failed_reads import FailedReads, describe_failed_read
from proofgate_operator.kube.store import Store
from proofgate_operator.plan.api_keys import KeyFault, KeyList, read_keys
from proofgate_operator.plan.attachment import TenantConditionType
from proofgate_operator.plan.unreadable_resources import GRACE_SECONDS, UnreadableResource, hold_started_at

FIELD = "spec.apiKeys"
#: The kinds that define a tenant's keys: unless both can be listed, a removed key could go unnoticed.
_KINDS = (TENANT_KIND, "Secret")


@dataclass(frozen=True, repr=False)
class TenantKeysRead:
    """A tenant's keys, those of its Secrets that could not be read, and the Secret and entry of each item."""

    keys: KeyList = field(default_factory=lambda: KeyList((), ()))
    unreadable: tuple[UnreadableResource, ...] = ()
    sources: Mapping[str, tuple[str, str]] = field(default_factory=dict)


async def read_secrets(
    client: Client,
    holds: FailedReads,
    tenant: GatewayTenant,
    before: TenantKeysRead | None,
    known: Mapping[str, str],
) -> TenantKeysRead:
    """Read the Secrets of a tenant. If a Secret cannot be read, its items keep their last known keys.

    `before` is the previous result. Without it, `known` has the digest of each item by name, as written in
    the shards.
    """
    sources = {
        item.name: (item.secret_ref.name, item.secret_ref.key)
        for item in tenant.spec.api_keys
        if item.secret_ref is not None
    }
    if before is not None:
        digests = {key.name: key.digest for key in before.keys.keys}
        known = {
            name: digest for name, digest in digests.items() if before.sources.get(name) == sources.get(name)
        }
    found: dict[str, Manifest | None] = {}
    unread: dict[str, UnreadableResource] = {}
    failures = []
    since = (
        _hold_started_at(client.store.get(TENANT_KIND, tenant.namespace, tenant.name))
        if before is None
        else None
    )
    for name in tenant.secrets:
        look = await client.read("Secret", tenant.namespace, name)
        found[name] = look.manifest
        if look.failure is not None:
            failures.append(look.failure.read)
            unread[name] = holds.record_failure(tenant.qualified_name, look.failure, since)
    holds.retain(tenant.qualified_name, failures)
    over = {name for name, blind in unread.items() if blind.is_expired}
    held = {
        name: digest for name, digest in known.items() if name in sources and sources[name][0] not in over
    }
    keys = read_keys(FIELD, tenant.spec.api_keys, found, unread, held)
    return TenantKeysRead(keys, tuple(unread.values()), sources)


def unlistable_resources(
    store: Store, namespace: str, holds: FailedReads, spent: float
) -> tuple[UnreadableResource, ...]:
    """Return the failures to list the kinds that define tenants in a namespace.

    `spent` is the number of seconds that had already passed of a hold which existed when this process
    started. If the API server does not answer at all, the last known state applies without an end, because an
    end would affect all tenants.
    """
    silent = (describe_failed_read(failure) for failure in store.unavailable_reasons(namespace, _KINDS))
    refused = (
        describe_failed_read(
            barred.failure,
            barred.blocked_at_wall + GRACE_SECONDS - (spent if barred.never_listed else 0.0),
            over=store.clock() - barred.blocked_at + (spent if barred.never_listed else 0.0) >= GRACE_SECONDS,
        )
        for barred in store.blocked_kinds(namespace, _KINDS)
    )
    return (*refused, *silent)


def with_faults(keys: KeyList, unread: tuple[UnreadableResource, ...]) -> KeyList:
    """Return the keys, with a fault for each resource of the tenant's namespace that cannot be listed."""
    told = (KeyFault("", blind.reason, blind.message) for blind in unread)
    return KeyList(keys.keys, (*keys.faults, *told)) if unread else keys


def is_status_current(live: Manifest | None, generation: int) -> bool:
    """Return whether a tenant's status is about its current spec. If so, the written shards are too."""
    conditions = ((live or {}).get("status") or {}).get("conditions") or []
    return any(
        found["type"] == TenantConditionType.KEYS_VALID and found.get("observedGeneration") == generation
        for found in conditions
    )


def _hold_started_at(live: Manifest | None) -> float | None:
    conditions = ((live or {}).get("status") or {}).get("conditions") or []
    return hold_started_at(conditions, TenantConditionType.KEYS_VALID)
