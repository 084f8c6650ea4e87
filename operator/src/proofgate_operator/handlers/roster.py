"""What is remembered of the tenants of one gateway, and how it begins: with what an operator wrote before."""

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
    OWNING_ANNOTATION,
    SHARDS,
    TENANTS,
    shard_digest,
)
from proofgate_operator.handlers.tenant_objects import read_tenant
from proofgate_operator.handlers.tenant_reads import KeysRead, unlisted, with_faults
from proofgate_operator.kube.attached import Name
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.holds import Holds
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome
from proofgate_operator.plan.api_keys import KeyList, entry
from proofgate_operator.plan.attachment import (
    Admission,
    beyond_share,
    selected_before,
    selectors_of,
    tenant_shares,
)
from proofgate_operator.plan.haproxy_sidecar import tenant_stamp
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.tenant_book import TenantBook
from proofgate_operator.plan.unread import Unread, held_since
from proofgate_operator.plan.written_shards import WrittenShards

#: What tells one reading of a tenant's keys from another: its object, and the versions of its Secrets.
Reading = tuple[str, int, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, repr=False)
class Verdict:
    """What was made of a tenant: why it was refused, or its keys; and, of what they are read from, what
    nobody may list."""

    refused: Problem | None = None
    read: KeysRead = field(default_factory=KeysRead)
    reading: Reading | None = None
    unlisted: tuple[Unread, ...] = ()
    #: When the last of the keys expires, in seconds since 1970.
    ends: float = math.inf

    @property
    def keys(self) -> KeyList:
        """Its keys, and what is wrong with the others."""
        return with_faults(self.read.keys, self.unlisted)

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Whatever is no look just now."""
        return (*self.read.unread, *self.unlisted)

    @property
    def lost(self) -> bool:
        """Whether nobody could look for so long that nothing is known of it any more."""
        return any(blind.over for blind in self.unlisted)


@dataclass(frozen=True)
class WrittenShard:
    """A shard as it is written: digest of its keys and tenants, what their owners were made from (None: it
    has no tenants), and the version of the Secret (empty: there is none)."""

    digest: str
    owning: str | None
    version: str


@dataclass
class Roster:
    """What is remembered of the tenants of one gateway."""

    uid: str
    book: TenantBook
    generation: int = 0
    #: The label selectors that were asked last, the namespaces of each, and why some could not be asked.
    selectors: frozenset[str] = frozenset()
    selected: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    unselected: dict[str, Unread] = field(default_factory=dict)
    #: What an operator before this one wrote, whether of the same spec, since when it held something, and how
    #: much of that hold was over.
    found: WrittenShards = field(default_factory=WrittenShards)
    same_spec: bool = False
    since: float | None = None
    spent: float = 0.0
    #: Tenants that are only known from there: nobody may list their namespaces.
    unseen: dict[Name, Unread] = field(default_factory=dict)
    #: Tenants of which something is no look just now.
    holding: set[Name] = field(default_factory=set)
    verdicts: dict[Name, Verdict] = field(default_factory=dict)
    written: dict[int, WrittenShard] = field(default_factory=dict)
    refused: dict[int, Problem] = field(default_factory=dict)
    #: What the owners were made from when all was written last.
    owning: str = ""
    untold: set[Name] = field(default_factory=set)
    #: When tenants were told last, in seconds since 1970.
    told_at: float = 0.0


async def begin_roster(client: Client, gateway: Gateway, holds: Holds) -> Roster:
    """Return the roster of a gateway that nothing is remembered of, with what its shards hold."""
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
        owning = (metadata.get("annotations") or {}).get(OWNING_ANNOTATION, "") if tenants else None
        written[shard] = WrittenShard(shard_digest(keys, tenants), owning, metadata["resourceVersion"])
    status = (client.store.get(KIND, gateway.namespace, gateway.name) or {}).get("status") or {}
    since = held_since(status.get("conditions") or [], ConditionType.RESOLVED_REFS)
    book = TenantBook(found.holders, found.plans, found.key_shards, found.name_shards)
    roster = Roster(gateway.uid, book, written=written, found=found)
    roster.since, roster.spent = since, holds.spent(since)
    roster.same_spec = status.get("observedGeneration") == gateway.generation
    for tenant in found.plans:
        namespace, _, name = tenant.partition("/")
        blind = unlisted(client.store, namespace, holds, roster.spent)
        if client.store.get(TENANT_KIND, namespace, name) is None and blind:
            roster.unseen[namespace, name] = blind[0]
    return roster


def has_shards(client: Client, gateway: Gateway) -> bool:
    """Return whether a shard of tenants was ever written: what is left in it is to be taken out."""
    keys = (("Secret", gateway.namespace, names(gateway).tenant_shard(shard)) for shard in range(SHARDS))
    return any(client.store.owner(key) == gateway.name for key in keys)


async def selected_namespaces(
    client: Client, gateway: Gateway, roster: Roster, holds: Holds
) -> Mapping[str, frozenset[str] | None]:
    """Return the namespaces that each of the gateway's selectors selects, or did when that could be read
    last; None where nobody may read them."""
    home, wanted = (gateway.namespace, gateway.name), selectors_of(gateway)
    for selector in roster.selectors - wanted:
        holds.keep(labels_owner(*home, selector))
    before = dict(roster.selected)
    if roster.generation == 0 and roster.same_spec:
        # Those that another operator let in.
        before.update(selected_before(gateway, roster.found.plans))
    roster.selectors, roster.unselected = wanted, {}
    found: dict[str, frozenset[str] | None] = {}
    for selector in sorted(wanted):
        owner = labels_owner(*home, selector)
        try:
            found[selector] = frozenset(await client.namespaces(selector))
        except ReadFailed as error:
            known = before.get(selector)
            if known is None and not holds.has(owner):
                if error.outcome is not ReadOutcome.MAY_NOT_LOOK:
                    raise
                found[selector] = None
                continue
            blind = roster.unselected[selector] = holds.begin(owner, error, roster.since)
            found[selector] = None if blind.over else known
        else:
            holds.keep(owner)
    return found


def labels_owner(namespace: str, gateway: str, selector: str) -> str:
    """Return who holds what a label selector of a gateway selects."""
    return f"{namespace}/{gateway} labels {selector}"


def admission_of(
    client: Client, gateway: Gateway, selected: Mapping[str, frozenset[str] | None], changed: set[Name]
) -> Admission:
    """Return what tenants are let in by. Where plans are shared within a namespace, a change of one tenant
    is one of all of its namespace: they are added to `changed`."""
    admission = Admission(selected)
    if not tenant_shares(gateway):
        return admission
    own = (gateway.namespace, gateway.name)
    namespaces = {namespace for namespace, _ in changed}
    changed |= {name for name in client.store.attached.members(own) if name[0] in namespaces}
    found = (read_tenant(client.store.get(TENANT_KIND, *name)) for name in changed)
    tenants = [tenant for tenant in found if tenant is not None and tenant.gateway == own]
    return Admission(selected, beyond_share(gateway, admission, tenants))


def expired_since(roster: Roster, now: float) -> set[Name]:
    """Return the tenants whose last key has expired since this was asked last; or has not after all, because
    the clock was set back.
    """
    before, roster.told_at = roster.told_at, now
    earlier, later = min(before, now), max(before, now)
    return {name for name, verdict in roster.verdicts.items() if earlier < verdict.ends <= later}


def unwritten_reason(gateway: Gateway, roster: Roster, tenant: GatewayTenant) -> Problem | None:
    """Return why a tenant is not where workers and HAProxy read; None if it is."""
    verdict = roster.verdicts[(tenant.namespace, tenant.name)]
    for shard in sorted(roster.book.shards_of(tenant.tenant, verdict.keys.keys)):
        if shard in roster.refused:
            return roster.refused[shard]
        if shard not in roster.written:
            if gateway.spec.paused:
                return Problem("Paused", "the gateway is paused: nothing is written")
            return Problem("Pending", "the tenant's keys are not written yet")
    return None


def published_stamp(roster: Roster) -> str:
    """Return the stamp of what is written; empty where that is not known. What is refused keeps nobody
    else's change from the pods."""
    if len(roster.written) + len(roster.refused) < SHARDS:
        return ""
    owning = {written.owning for written in roster.written.values() if written.owning is not None}
    digests = [
        roster.written[shard].digest if shard in roster.written else roster.book.digest(shard)
        for shard in range(SHARDS)
    ]
    return tenant_stamp(digests, owning.pop() if owning else roster.owning) if len(owning) < 2 else ""


def unread_of(roster: Roster) -> tuple[Unread, ...]:
    """Return what is no look of all tenants, each read of a namespace once: what ends first."""
    found = [blind for name in roster.holding for blind in roster.verdicts[name].unread]
    found += roster.unseen.values()
    found += roster.unselected.values()
    first: dict[tuple[str, ...], Unread] = {}
    for blind in sorted(found, key=lambda blind: blind.until or 0.0):
        first.setdefault((blind.reason, blind.verb, blind.resource, blind.namespace or ""), blind)
    return tuple(first[key] for key in sorted(first))
