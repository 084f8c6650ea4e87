"""The operator's records of one gateway's tenants; they are initialized from the shards that are already
written."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from proofgate_operator.api import KIND
from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.tenant import TENANT_KIND, GatewayTenant
from proofgate_operator.build.naming import names
from proofgate_operator.build.tenant_shards import (
    KEYS,
    OWNERS_INPUT_ANNOTATION,
    SHARDS,
    TENANTS,
    shard_digest,
)
from proofgate_operator.handlers.tenant_key_secrets import TenantKeysRead, unlistable_resources, with_faults
from proofgate_operator.handlers.tenant_objects import read_tenant
from proofgate_operator.kube.attached_tenants import NamespacedName
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.failed_reads import FailedReads
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome
from proofgate_operator.plan.api_keys import KeyList, entry
from proofgate_operator.plan.attachment import (
    Admission,
    namespace_selectors,
    previously_selected_namespaces,
    tenant_limits_per_namespace,
    tenants_over_share,
)
from proofgate_operator.plan.haproxy_sidecar import tenant_stamp
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.tenant_registry import TenantRegistry
from proofgate_operator.plan.unreadable_resources import UnreadableResource, hold_started_at
from proofgate_operator.plan.written_shards import WrittenShards

#: Identifies one state of a tenant's keys: the uid and generation of its object, and the versions of its
#: Secrets.
SourceVersions = tuple[str, int, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, repr=False)
class TenantVerdict:
    """The result for one tenant: the reason for its refusal, or its keys, and the resources that cannot be
    listed."""

    refusal: Problem | None = None
    keys_read: TenantKeysRead = field(default_factory=TenantKeysRead)
    source_versions: SourceVersions | None = None
    unlisted: tuple[UnreadableResource, ...] = ()
    #: The expiry of the key that expires last, in seconds since 1970; infinity if no expiry is known.
    expires_at: float = math.inf

    @property
    def keys(self) -> KeyList:
        """The tenant's valid keys, and the faults of the other keys."""
        return with_faults(self.keys_read.keys, self.unlisted)

    @property
    def unreadable(self) -> tuple[UnreadableResource, ...]:
        """The resources of the tenant that cannot be read or listed at the moment."""
        return (*self.keys_read.unreadable, *self.unlisted)

    @property
    def is_expired(self) -> bool:
        """Whether the tenant's resources were unlistable for so long that the last known state no longer
        applies."""
        return any(blind.is_expired for blind in self.unlisted)


@dataclass(frozen=True)
class WrittenShard:
    """A written shard: the digest of its keys and tenants, the input of its `owners` file (None: the shard
    has no tenants), and the version of its Secret (empty: there is no Secret)."""

    digest: str
    owners_input: str | None
    version: str


@dataclass
class Roster:
    """The records of one gateway's tenants."""

    uid: str
    registry: TenantRegistry
    generation: int = 0
    #: The label selectors of the last reconcile, the namespaces of each selector, and the selectors whose
    #: list failed.
    selectors: frozenset[str] = frozenset()
    namespaces_by_selector: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    unreadable_selectors: dict[str, UnreadableResource] = field(default_factory=dict)
    #: The state that a previous operator process wrote: the shards, whether its status is about the current
    #: spec, the start of a hold that it reported, and the seconds of that hold that have passed.
    previously_written: WrittenShards = field(default_factory=WrittenShards)
    same_spec: bool = False
    hold_started_at: float | None = None
    hold_elapsed_seconds: float = 0.0
    #: Tenants known only from `previously_written`, because their namespaces cannot be listed.
    unlisted_tenants: dict[NamespacedName, UnreadableResource] = field(default_factory=dict)
    #: Tenants with a resource that cannot be read at the moment.
    unreadable_tenants: set[NamespacedName] = field(default_factory=set)
    verdicts: dict[NamespacedName, TenantVerdict] = field(default_factory=dict)
    written: dict[int, WrittenShard] = field(default_factory=dict)
    refusals: dict[int, Problem] = field(default_factory=dict)
    #: The input of the `owners` files when all shards were last written.
    owners_input: str = ""
    unreported: set[NamespacedName] = field(default_factory=set)
    #: When tenants were last reported to, in seconds since 1970.
    reported_at: float = 0.0


async def load_roster(client: Client, gateway: Gateway, holds: FailedReads) -> Roster:
    """Return a new roster for a gateway, initialized from its written shards."""
    found = WrittenShards()
    written: dict[int, WrittenShard] = {}
    for shard in range(SHARDS):
        name = names(gateway).tenant_shard(shard)
        if client.store.lacks_secret(gateway.namespace, name):
            continue
        live = await client.get("Secret", gateway.namespace, name)
        if live is None or classify(gateway, live) is not Ownership.OURS:
            continue
        found.add(shard, live)
        keys, tenants = entry(live, KEYS) or "", entry(live, TENANTS) or ""
        metadata = live["metadata"]
        owning = (metadata.get("annotations") or {}).get(OWNERS_INPUT_ANNOTATION, "") if tenants else None
        written[shard] = WrittenShard(shard_digest(keys, tenants), owning, metadata["resourceVersion"])
    status = (client.store.get(KIND, gateway.namespace, gateway.name) or {}).get("status") or {}
    since = hold_started_at(status.get("conditions") or [], ConditionType.RESOLVED_REFS)
    book = TenantRegistry(found.holders, found.plans, found.key_shards, found.name_shards)
    roster = Roster(gateway.uid, book, written=written, previously_written=found)
    roster.hold_started_at, roster.hold_elapsed_seconds = since, holds.elapsed(since)
    roster.same_spec = status.get("observedGeneration") == gateway.generation
    for tenant in found.plans:
        namespace, _, name = tenant.partition("/")
        blind = unlistable_resources(client.store, namespace, holds, roster.hold_elapsed_seconds)
        if client.store.get(TENANT_KIND, namespace, name) is None and blind:
            roster.unlisted_tenants[namespace, name] = blind[0]
    return roster


def has_shards(client: Client, gateway: Gateway) -> bool:
    """Return whether a shard of tenants was ever written, so that its content may have to be removed."""
    keys = (("Secret", gateway.namespace, names(gateway).tenant_shard(shard)) for shard in range(SHARDS))
    return any(client.store.owner(key) == gateway.name for key in keys)


async def selected_namespaces(
    client: Client, gateway: Gateway, roster: Roster, holds: FailedReads
) -> Mapping[str, frozenset[str] | None]:
    """Return the namespaces that each of the gateway's selectors selects. If the list currently fails, return
    the last known namespaces, or None if the last known state no longer applies."""
    home, wanted = (gateway.namespace, gateway.name), namespace_selectors(gateway)
    for selector in roster.selectors - wanted:
        holds.retain(selector_read_owner(*home, selector))
    before = dict(roster.namespaces_by_selector)
    if roster.generation == 0 and roster.same_spec:
        # The namespaces of tenants that a previous operator process admitted.
        before.update(previously_selected_namespaces(gateway, roster.previously_written.plans))
    roster.selectors, roster.unreadable_selectors = wanted, {}
    found: dict[str, frozenset[str] | None] = {}
    for selector in sorted(wanted):
        owner = selector_read_owner(*home, selector)
        try:
            found[selector] = frozenset(await client.namespaces(selector))
        except ReadFailed as error:
            known = before.get(selector)
            if known is None and not holds.has_failures(owner):
                if error.outcome is not ReadOutcome.ACCESS_DENIED:
                    raise
                found[selector] = None
                continue
            blind = roster.unreadable_selectors[selector] = holds.record_failure(
                owner, error, roster.hold_started_at
            )
            found[selector] = None if blind.is_expired else known
        else:
            holds.retain(owner)
    return found


def selector_read_owner(namespace: str, gateway: str, selector: str) -> str:
    """Return the owner name under which a failed read for a label selector is recorded."""
    return f"{namespace}/{gateway} labels {selector}"


def build_admission(
    client: Client,
    gateway: Gateway,
    selected: Mapping[str, frozenset[str] | None],
    changed: set[NamespacedName],
) -> Admission:
    """Return the admission rules. Where plans are shared within a namespace, a change of one tenant affects
    all tenants of its namespace: they are added to `changed`."""
    admission = Admission(selected)
    if not tenant_limits_per_namespace(gateway):
        return admission
    own = (gateway.namespace, gateway.name)
    namespaces = {namespace for namespace, _ in changed}
    changed |= {name for name in client.store.attached.members(own) if name[0] in namespaces}
    found = (read_tenant(client.store.get(TENANT_KIND, *name)) for name in changed)
    tenants = [tenant for tenant in found if tenant is not None and tenant.gateway_key == own]
    return Admission(selected, tenants_over_share(gateway, admission, tenants))


def newly_expired_tenants(roster: Roster, now: float) -> set[NamespacedName]:
    """Return the tenants whose last key has expired since the previous call, and, if the clock was set back,
    those whose last key is valid again."""
    before, roster.reported_at = roster.reported_at, now
    earlier, later = min(before, now), max(before, now)
    return {name for name, verdict in roster.verdicts.items() if earlier < verdict.expires_at <= later}


def unwritten_reason(gateway: Gateway, roster: Roster, tenant: GatewayTenant) -> Problem | None:
    """Return why a tenant's keys are not in the shards that workers and HAProxy read; None if they are."""
    verdict = roster.verdicts[(tenant.namespace, tenant.name)]
    for shard in sorted(roster.registry.shards_of(tenant.qualified_name, verdict.keys.keys)):
        if shard in roster.refusals:
            return roster.refusals[shard]
        if shard not in roster.written:
            if gateway.spec.paused:
                return Problem("Paused", "the gateway is paused: nothing is written")
            return Problem("Pending", "the tenant's keys are not written yet")
    return None


def published_stamp(roster: Roster) -> str:
    """Return the stamp of the written shards; empty if it is not known. A refused shard does not stop the
    changes of other shards from reaching the pods."""
    if len(roster.written) + len(roster.refusals) < SHARDS:
        return ""
    owning = {written.owners_input for written in roster.written.values() if written.owners_input is not None}
    digests = [
        roster.written[shard].digest if shard in roster.written else roster.registry.digest(shard)
        for shard in range(SHARDS)
    ]
    return tenant_stamp(digests, owning.pop() if owning else roster.owners_input) if len(owning) < 2 else ""


def unreadable_resources(roster: Roster) -> tuple[UnreadableResource, ...]:
    """Return the failed reads of all tenants. A read that several tenants share is returned once, with the
    earliest end."""
    found = [blind for name in roster.unreadable_tenants for blind in roster.verdicts[name].unreadable]
    found += roster.unlisted_tenants.values()
    found += roster.unreadable_selectors.values()
    first: dict[tuple[str, ...], UnreadableResource] = {}
    for blind in sorted(found, key=lambda blind: blind.expires_at or 0.0):
        first.setdefault((blind.reason, blind.verb, blind.resource, blind.namespace or ""), blind)
    return tuple(first[key] for key in sorted(first))
