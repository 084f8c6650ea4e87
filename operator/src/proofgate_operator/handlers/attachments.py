"""Tenants that are objects of their own: read, let in, written into the shards of their gateway, and told.

What was made of each is kept in memory, without any key, so that a reconcile costs what changed since
the one before. Without that memory, after a start, the keys of all are read once more before anything is
written.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from proofgate_operator import metrics
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.tenant import TENANT_KIND, GatewayTenant
from proofgate_operator.build.haproxy_maps import entry_of
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.build.owners import Shares, owner
from proofgate_operator.build.tenant_shards import (
    KEYS,
    OWNING_ANNOTATION,
    SHARDS,
    TENANTS,
    shard_digest,
    shard_of_key,
    shard_of_tenant,
    shard_secret,
)
from proofgate_operator.handlers.tenant_objects import read_tenant, write_status
from proofgate_operator.kube.apply import apply
from proofgate_operator.kube.attached import Name
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.api_keys import KeyFault, KeyList, entry, read_keys
from proofgate_operator.plan.attachment import Admission, beyond_share, refusal, selectors_of
from proofgate_operator.plan.front_door import owning_of, tenant_stamp
from proofgate_operator.plan.observed import TenantShards
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.tenant_book import Attached, TenantBook

#: Requests in flight for the tenants of one gateway.
_CONCURRENCY = 8
#: Statuses that one reconcile writes: what tenants are told must not hold up what their gateway needs.
_STATUSES = 256
_FIELD = "spec.apiKeys"
#: What tells one reading of a tenant's keys from another: its object, and the versions of its Secrets.
Reading = tuple[str, int, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, repr=False)
class _Verdict:
    """What was made of a tenant: why it was refused, or its keys."""

    refused: Problem | None = None
    keys: KeyList = field(default_factory=lambda: KeyList((), ()))
    reading: Reading | None = None
    #: When the last of the keys expires, in seconds since 1970.
    ends: float = math.inf


@dataclass(frozen=True)
class _Written:
    """A shard as it is written: digest of its keys and tenants, what their owners were made from (None: it
    has no tenants), and the version of the Secret (empty: there is none)."""

    digest: str
    owning: str | None
    version: str


@dataclass
class _Roster:
    """What is remembered of the tenants of one gateway."""

    uid: str
    book: TenantBook
    generation: int = 0
    selected: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    verdicts: dict[Name, _Verdict] = field(default_factory=dict)
    written: dict[int, _Written] = field(default_factory=dict)
    refused: dict[int, Problem] = field(default_factory=dict)
    #: What the owners were made from when all was written last.
    owning: str = ""
    untold: set[Name] = field(default_factory=set)
    #: When tenants were told last, in seconds since 1970.
    told_at: float = 0.0


class Attachments:
    """The tenants of all gateways of one process."""

    def __init__(self) -> None:
        self._rosters: dict[Name, _Roster] = {}

    def forget(self, namespace: str, gateway: str) -> None:
        """Drop what is remembered of a gateway that is gone."""
        self._rosters.pop((namespace, gateway), None)

    async def refresh(self, client: Client, gateway: Gateway, listed: Callable[[], Set[str]]) -> TenantShards:
        """Take in what changed of a gateway's tenants, and return what their shards are to be.

        `listed` tells the digests of the keys of the gateway's own list. Raises `ApiError` when a Secret
        cannot be asked for: then nothing is forgotten, and nobody loses a key for it.
        """
        home = (gateway.namespace, gateway.name)
        attached = client.store.attached
        roster = self._rosters.get(home)
        begins = roster is None or roster.uid != gateway.uid
        closed = gateway.spec.allowed_tenants is None and not attached.members(home)
        if closed and not _has_shards(client, gateway):
            self._rosters.pop(home, None)
            attached.take(home)
            return TenantShards()
        changed = attached.take(home)
        try:
            if roster is None or begins:
                roster = await _begun(client, gateway)
                changed |= attached.members(home)
            await self._renew(client, gateway, roster, changed)
        except BaseException:
            attached.give_back(home, changed)
            raise
        self._rosters[home] = roster
        roster.book.reserve(frozenset(listed()))
        for full in roster.book.touched:
            namespace, _, tenant = full.partition("/")
            roster.untold.add((namespace, tenant))
        roster.book.touched.clear()
        for shard, written in list(roster.written.items()):
            name = names(gateway).tenant_shard(shard)
            if client.store.version("Secret", gateway.namespace, name) != written.version:
                # Somebody else wrote it, or took it away.
                del roster.written[shard]
        if gateway.spec.allowed_tenants is None:
            # Nobody reads the shards, whatever is still to be taken out of them.
            return TenantShards()
        return TenantShards(
            tuple(roster.book.digest(shard) for shard in range(SHARDS)),
            _published(roster),
            roster.book.names if gateway.spec.ledger.shred_keys else frozenset(),
        )

    async def publish(
        self, client: Client, gateway: Gateway, workers: int, shares: Shares
    ) -> tuple[bool, list[str]]:
        """Write the shards that changed; return whether any write changed anything, and what was refused."""
        roster = self._rosters.get((gateway.namespace, gateway.name))
        if roster is None:
            return False, []
        owning = owning_of(gateway, workers, shares)

        def owner_of(tenant: str) -> str | None:
            return entry_of(owner(tenant, None, workers, shares)) if owning else None

        changed = False
        for shard in range(SHARDS):
            digest = roster.book.digest(shard)
            written = roster.written.get(shard)
            if written is not None and written.digest == digest and written.owning in (None, owning):
                continue
            files = roster.book.files(shard, owner_of)
            whose = owning if files[TENANTS] else None
            name = names(gateway).tenant_shard(shard)
            live = await client.get("Secret", gateway.namespace, name)
            standing = classify(gateway, live)
            if roster.refused.pop(shard, None):
                self._tell_of(roster, shard)
            if standing in (Ownership.ABSENT, Ownership.FOREIGN) and not any(files.values()):
                # Nothing of ours is there, and nothing is to be.
                version = live["metadata"]["resourceVersion"] if live else ""
                roster.written[shard] = _Written(digest, None, version)
                continue
            if standing in (Ownership.FOREIGN, Ownership.LEAVING):
                message = f"Secret {name} belongs to somebody else, or is on its way out"
                self._refuse(roster, shard, Problem("NameTaken", message))
                continue
            try:
                answer = await apply(client, shard_secret(gateway, shard, files, whose or ""))
            except ApiError as error:
                if error.transient:
                    raise
                # Its words might quote the Secret.
                self._refuse(roster, shard, Problem("ApplyFailed", f"Secret {name}: {error.reason}"))
                continue
            metrics.WRITES.labels("Secret", "apply").inc()
            version = answer["metadata"]["resourceVersion"]
            roster.written[shard] = _Written(digest, whose, version)
            changed |= live is None or live["metadata"]["resourceVersion"] != version
        roster.owning = owning
        return changed, [problem.message for problem in roster.refused.values()]

    async def report(self, client: Client, gateway: Gateway) -> bool:
        """Tell tenants what was made of them; return whether some are still to be told."""
        home = (gateway.namespace, gateway.name)
        roster = self._rosters.get(home)
        if roster is None:
            return False
        roster.untold |= _expired_since(roster, time.time())
        now = sorted(roster.untold)[:_STATUSES]
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def tell(tenant: Name) -> None:
            async with gate:
                await self._tell(client, gateway, roster, tenant)
            roster.untold.discard(tenant)

        await asyncio.gather(*(tell(tenant) for tenant in now))
        return bool(roster.untold)

    async def _renew(self, client: Client, gateway: Gateway, roster: _Roster, changed: set[Name]) -> None:
        selected = await _selected(client, gateway)
        if roster.generation != gateway.generation or roster.selected != selected:
            # Whether they may attach, and what their plans are, has to be found out anew; no key is read.
            changed |= client.store.attached.members((gateway.namespace, gateway.name))
        admission = _admission(client, gateway, selected, changed)
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def judged(tenant: Name) -> tuple[_Verdict | None, Attached | None]:
            async with gate:
                return await self._judge(client, gateway, roster, admission, tenant)

        order = sorted(changed)
        found = zip(order, await asyncio.gather(*map(judged, order)), strict=True)
        # Not before all are read: who has a key, or room, does not hang on whose Secrets are read first.
        accepted: dict[Name, Attached] = {}
        for name, (verdict, attached) in found:
            if verdict is None:
                roster.verdicts.pop(name, None)
            else:
                roster.verdicts[name] = verdict
            if attached is None:
                roster.book.drop("/".join(name))
            else:
                accepted[name] = attached
        refused = roster.book.put(*accepted.values())
        for name, attached in accepted.items():
            if attached.name in refused:
                message = "the gateway has as many tenants as it can have, or as it takes of one namespace"
                roster.verdicts[name] = _Verdict(Problem("NoRoom", message))
        roster.generation, roster.selected = gateway.generation, selected
        roster.untold |= changed

    async def _judge(
        self,
        client: Client,
        gateway: Gateway,
        roster: _Roster,
        admission: Admission,
        name: Name,
    ) -> tuple[_Verdict | None, Attached | None]:
        """Find out what a tenant is to have: the verdict, None if it is none of the gateway's, and what goes
        into the book."""
        store, full = client.store, "/".join(name)
        tenant = read_tenant(store.get(TENANT_KIND, *name))
        if tenant is None or tenant.gateway != (gateway.namespace, gateway.name):
            return None, None
        refused = refusal(gateway, tenant, admission)
        if refused is not None:
            store.attached.reads(name, frozenset())
            return _Verdict(refused), None
        # Before they are read: whatever happens to them from now on is another change.
        store.attached.reads(name, frozenset((tenant.namespace, secret) for secret in tenant.secrets))
        versions = tuple((secret, store.version("Secret", name[0], secret)) for secret in tenant.secrets)
        reading = (tenant.uid, tenant.generation, versions)
        before = roster.verdicts.get(name)
        if before is not None and before.reading == reading:
            keys = before.keys
        else:
            found = {secret: await _secret(client, name[0], secret) for secret in tenant.secrets}
            keys = read_keys(_FIELD, tenant.spec.api_keys, found)
        attached = Attached(full, tenant.spec.plan, tenant.created, keys.keys)
        ends = max((key.end for key in keys.keys), default=math.inf)
        return _Verdict(None, keys, reading, ends), attached

    async def _tell(self, client: Client, gateway: Gateway, roster: _Roster, name: Name) -> None:
        live = client.store.get(TENANT_KIND, *name)
        tenant, verdict = read_tenant(live), roster.verdicts.get(name)
        if live is None or tenant is None or verdict is None:
            return
        lacking = {key.digest: key for key in roster.book.lacks(tenant.tenant)}
        keys = [key for key in verdict.keys.keys if key.digest not in lacking]
        faults = [*verdict.keys.faults]
        for key in lacking.values():
            # Whose it is, is nobody's business but the holder's.
            shared = roster.book.holder(key.digest) is not None or key.digest in roster.book.reserved
            reason = "KeyShared" if shared else "NoRoom"
            why = "is another tenant's key" if shared else "finds no room: the gateway has too many keys"
            if not shared and roster.book.is_crowded(key.digest, tenant.tenant):
                why += " of its namespace, which has its share of them"
            faults.append(KeyFault(key.name, reason, f"{_FIELD}[{key.name}] {why}"))
        unwritten = _unwritten(gateway, roster, tenant)
        before = live.get("status") or {}
        await write_status(client, tenant, before, verdict.refused, keys, faults, unwritten)

    def _refuse(self, roster: _Roster, shard: int, problem: Problem) -> None:
        roster.refused[shard] = problem
        roster.written.pop(shard, None)
        self._tell_of(roster, shard)

    @staticmethod
    def _tell_of(roster: _Roster, shard: int) -> None:
        """Have the tenants of a shard told."""
        roster.untold |= {
            name
            for name, verdict in roster.verdicts.items()
            if verdict.refused is None and shard in _shards_of("/".join(name), verdict.keys)
        }


def _expired_since(roster: _Roster, now: float) -> set[Name]:
    """Return the tenants whose last key has expired since this was asked before."""
    before, roster.told_at = roster.told_at, now
    return {name for name, verdict in roster.verdicts.items() if before < verdict.ends <= now}


def _has_shards(client: Client, gateway: Gateway) -> bool:
    """Return whether a shard of tenants was ever written: what is left in it is to be taken out."""
    keys = (("Secret", gateway.namespace, names(gateway).tenant_shard(shard)) for shard in range(SHARDS))
    return any(client.store.owner(key) == gateway.name for key in keys)


def _shards_of(tenant: str, keys: KeyList) -> set[int]:
    return {shard_of_tenant(tenant), *(shard_of_key(key.digest) for key in keys.keys)}


def _unwritten(gateway: Gateway, roster: _Roster, tenant: GatewayTenant) -> Problem | None:
    verdict = roster.verdicts[(tenant.namespace, tenant.name)]
    for shard in sorted(_shards_of(tenant.tenant, verdict.keys)):
        if shard in roster.refused:
            return roster.refused[shard]
        if shard not in roster.written:
            if gateway.spec.paused:
                return Problem("Paused", "the gateway is paused: nothing is written")
            return Problem("Pending", "it is not written yet")
    return None


def _published(roster: _Roster) -> str:
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


async def _secret(client: Client, namespace: str, name: str) -> Manifest | None:
    """Ask for a Secret; one that may not be read is none, so that nobody has a key by it."""
    try:
        return await client.get("Secret", namespace, name)
    except ApiError as error:
        if error.status == 403:
            return None
        raise


async def _selected(client: Client, gateway: Gateway) -> Mapping[str, frozenset[str] | None]:
    found: dict[str, frozenset[str] | None] = {}
    for selector in sorted(selectors_of(gateway)):
        try:
            found[selector] = frozenset(await client.namespaces(selector))
        except ApiError as error:
            if error.status != 403:
                raise
            found[selector] = None
    return found


def _admission(
    client: Client, gateway: Gateway, selected: Mapping[str, frozenset[str] | None], changed: set[Name]
) -> Admission:
    """Return what tenants are let in by. Where plans are shared within a namespace, a change of one tenant
    is one of all of its namespace."""
    admission = Admission(selected)
    if not any(plan.per_namespace for plan in gateway.spec.plans):
        return admission
    namespaces = {namespace for namespace, _ in changed}
    members = client.store.attached.members((gateway.namespace, gateway.name))
    changed |= {name for name in members if name[0] in namespaces}
    found = (read_tenant(client.store.get(TENANT_KIND, *name)) for name in changed)
    own = (gateway.namespace, gateway.name)
    tenants = [tenant for tenant in found if tenant is not None and tenant.gateway == own]
    return Admission(selected, beyond_share(gateway, admission, tenants))


async def _begun(client: Client, gateway: Gateway) -> _Roster:
    """Return the roster of a gateway that nothing is remembered of, with what its shards hold."""
    holders: dict[str, str] = {}
    before: set[str] = set()
    written: dict[int, _Written] = {}
    for shard in range(SHARDS):
        live = await client.get("Secret", gateway.namespace, names(gateway).tenant_shard(shard))
        if live is None or classify(gateway, live) is not Ownership.OURS:
            continue
        keys, tenants = entry(live, KEYS) or "", entry(live, TENANTS) or ""
        for line in keys.splitlines():
            words = line.split()
            if len(words) >= 2:
                holders[words[0]] = words[1]
        before |= {line.split(" ", 1)[0] for line in tenants.splitlines()}
        metadata = live["metadata"]
        owning = (metadata.get("annotations") or {}).get(OWNING_ANNOTATION, "") if tenants else None
        written[shard] = _Written(shard_digest(keys, tenants), owning, metadata["resourceVersion"])
    return _Roster(gateway.uid, TenantBook(holders, before), written=written)
