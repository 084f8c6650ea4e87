"""Tenants that are objects of their own: read, let in, written into the shards of their gateway, and told.

What was made of each is kept in memory, without any key, so that a reconcile costs what changed since
the one before. Without that memory, after a start, the keys of all are read once more before anything is
written.
"""

import asyncio
import math
import time
from collections.abc import Callable, Set

from proofgate_operator import metrics
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.tenant import TENANT_KIND
from proofgate_operator.build.haproxy_maps import attached_entry
from proofgate_operator.build.naming import names
from proofgate_operator.build.owners import Shares
from proofgate_operator.build.tenant_shards import SHARDS, TENANTS, shard_secret
from proofgate_operator.handlers.roster import (
    Roster,
    Verdict,
    WrittenShard,
    admission_of,
    begin_roster,
    expired_since,
    has_shards,
    labels_owner,
    published_stamp,
    selected_namespaces,
    unread_of,
    unwritten_reason,
)
from proofgate_operator.handlers.tenant_objects import read_tenant, write_status
from proofgate_operator.handlers.tenant_reads import FIELD, read_secrets, told_for, unlisted
from proofgate_operator.kube.apply import apply
from proofgate_operator.kube.attached import Name
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.holds import Holds
from proofgate_operator.plan.api_keys import KeyFault
from proofgate_operator.plan.attachment import Admission, refusal, refusal_of
from proofgate_operator.plan.haproxy_sidecar import owning_of
from proofgate_operator.plan.observed import TenantShards
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.tenant_book import Attached
from proofgate_operator.plan.unread import UnreadReason

#: Requests in flight for the tenants of one gateway.
_CONCURRENCY = 8
#: Statuses that one reconcile writes: what tenants are told must not hold up what their gateway needs.
_STATUSES = 256


class Attachments:
    """The tenants of all gateways of one process."""

    def __init__(self, holds: Holds | None = None) -> None:
        self._rosters: dict[Name, Roster] = {}
        self.holds = holds or Holds()

    def forget(self, namespace: str, gateway: str) -> None:
        """Drop what is remembered of a gateway that is gone."""
        roster = self._rosters.pop((namespace, gateway), None)
        self.holds.keep(f"{namespace}/{gateway} secrets")
        if roster is None:
            return
        for name in roster.holding:
            self.holds.keep("/".join(name))
        for selector in roster.selectors:
            self.holds.keep(labels_owner(namespace, gateway, selector))

    def holding(self, namespace: str, gateway: str) -> bool:
        """Return whether anything counts for a gateway's tenants that nobody may look at just now."""
        roster = self._rosters.get((namespace, gateway))
        return roster is not None and bool(roster.holding or roster.unseen or roster.unselected)

    def due(self, namespace: str, gateway: str, now: float) -> float:
        """Return when the last key of a gateway's tenant ends next after `now`, in seconds since 1970."""
        roster = self._rosters.get((namespace, gateway))
        verdicts = roster.verdicts.values() if roster else ()
        return min((verdict.ends for verdict in verdicts if verdict.ends > now), default=math.inf)

    async def refresh(self, client: Client, gateway: Gateway, listed: Callable[[], Set[str]]) -> TenantShards:
        """Take in what changed of a gateway's tenants, and return what their shards are to be.

        `listed` tells the digests of the keys of the gateway's own list. What nobody may look at, of a
        namespace or a Secret, stays as it was for `HOLD_SECONDS`.
        """
        home = (gateway.namespace, gateway.name)
        attached = client.store.attached
        roster = self._rosters.get(home)
        begins = roster is None or roster.uid != gateway.uid
        closed = gateway.spec.allowed_tenants is None and not attached.members(home)
        if closed and not has_shards(client, gateway):
            self._rosters.pop(home, None)
            attached.take(home)
            return TenantShards()
        changed = attached.take(home)
        try:
            if roster is None or begins:
                roster = await begin_roster(client, gateway, self.holds)
                changed |= attached.members(home)
            changed |= self._to_look_at(client, roster)
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
            published_stamp(roster),
            roster.book.names if gateway.spec.ledger.shred_keys else frozenset(),
            unread_of(roster),
        )

    async def publish(
        self, client: Client, gateway: Gateway, workers: int, shares: Shares
    ) -> tuple[bool, list[str]]:
        """Write the shards that changed; return whether any write changed anything, and what was refused."""
        roster = self._rosters.get((gateway.namespace, gateway.name))
        if roster is None:
            return False, []
        owning = owning_of(gateway, workers, shares)

        def owner_of(tenant: str, plan: str) -> str | None:
            return attached_entry(gateway, tenant, plan, workers, shares) if owning else None

        changed = False
        for shard in roster.book.emptiest_first:
            digest = roster.book.digest(shard)
            written = roster.written.get(shard)
            if written is not None and written.digest == digest and written.owning in (None, owning):
                continue
            files = roster.book.files(shard, owner_of)
            whose = owning if files[TENANTS] else None
            name = names(gateway).tenant_shard(shard)
            # Most gateways have few tenants: empty shards that nobody made are not asked for, one by one.
            idle = not any(files.values()) and client.store.lacks_secret(gateway.namespace, name)
            live = None if idle else await client.get("Secret", gateway.namespace, name)
            standing = classify(gateway, live)
            if roster.refused.pop(shard, None):
                self._tell_of(roster, shard)
            if standing in (Ownership.ABSENT, Ownership.FOREIGN) and not any(files.values()):
                # Nothing of ours is there, and nothing is to be.
                version = live["metadata"]["resourceVersion"] if live else ""
                roster.written[shard] = WrittenShard(digest, None, version)
                continue
            if standing in (Ownership.FOREIGN, Ownership.LEAVING):
                message = f"Secret {name} belongs to another owner, or is being deleted"
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
            roster.written[shard] = WrittenShard(digest, whose, version)
            changed |= live is None or live["metadata"]["resourceVersion"] != version
        roster.owning = owning
        return changed, [problem.message for problem in roster.refused.values()]

    async def report(self, client: Client, gateway: Gateway) -> bool:
        """Tell tenants what was made of them; return whether some are still to be told."""
        home = (gateway.namespace, gateway.name)
        roster = self._rosters.get(home)
        if roster is None:
            return False
        roster.untold |= expired_since(roster, time.time())
        now = sorted(roster.untold)[:_STATUSES]
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def tell(tenant: Name) -> None:
            async with gate:
                await self._tell(client, gateway, roster, tenant)
            roster.untold.discard(tenant)

        await asyncio.gather(*(tell(tenant) for tenant in now))
        return bool(roster.untold)

    async def _renew(self, client: Client, gateway: Gateway, roster: Roster, changed: set[Name]) -> None:
        selected = await selected_namespaces(client, gateway, roster, self.holds)
        if roster.generation != gateway.generation or roster.selected != selected:
            # Whether they may attach, and what their plans are, has to be found out anew; no key is read.
            changed |= client.store.attached.members((gateway.namespace, gateway.name))
        admission = admission_of(client, gateway, selected, changed)
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def judged(tenant: Name) -> tuple[Verdict | None, Attached | None]:
            async with gate:
                return await self._judge(client, gateway, roster, admission, tenant)

        order = sorted(changed)
        found = zip(order, await asyncio.gather(*map(judged, order)), strict=True)
        # Not before all are read: who has a key, or room, does not hang on whose Secrets are read first.
        accepted = self._unseen(client, gateway, roster, admission)
        for name, (verdict, attached) in found:
            if verdict is None:
                roster.verdicts.pop(name, None)
            else:
                roster.verdicts[name] = verdict
            if verdict is not None and verdict.unread:
                roster.holding.add(name)
            else:
                roster.holding.discard(name)
                self.holds.keep("/".join(name))
            if attached is None:
                roster.book.drop("/".join(name))
            else:
                accepted[name] = attached
        refused = roster.book.put(*accepted.values())
        for name, attached in accepted.items():
            if attached.name in refused:
                message = "the gateway's limit of tenants is reached, in total or for this namespace"
                roster.verdicts[name] = Verdict(Problem("NoRoom", message))
        roster.generation, roster.selected = gateway.generation, selected
        roster.untold |= changed

    async def _judge(
        self,
        client: Client,
        gateway: Gateway,
        roster: Roster,
        admission: Admission,
        name: Name,
    ) -> tuple[Verdict | None, Attached | None]:
        """Find out what a tenant is to have: the verdict, None if it is none of the gateway's, and what goes
        into the book."""
        store, full = client.store, "/".join(name)
        tenant = read_tenant(store.get(TENANT_KIND, *name))
        if tenant is None or tenant.gateway != (gateway.namespace, gateway.name):
            return None, None
        refused = refusal(gateway, tenant, admission)
        if refused is not None:
            store.attached.reads(name, frozenset())
            return Verdict(refused), None
        blind = unlisted(store, name[0], self.holds, roster.spent)
        if any(unread.over for unread in blind):
            return Verdict(unlisted=blind), None
        # Before they are read: whatever happens to them from now on is another change.
        store.attached.reads(name, frozenset((tenant.namespace, secret) for secret in tenant.secrets))
        versions = tuple((secret, store.version("Secret", name[0], secret)) for secret in tenant.secrets)
        reading = (tenant.uid, tenant.generation, versions)
        before = roster.verdicts.get(name)
        # A reading that was no look is none that could be gone by.
        done = before is not None and before.reading == reading
        if before is not None and done and not (before.read.unread and self.holds.due(full)):
            read = before.read
        else:
            known = (
                roster.found.digests(full)
                if told_for(store.get(TENANT_KIND, *name), tenant.generation)
                else {}
            )
            read = await read_secrets(client, self.holds, tenant, before.read if before else None, known)
        attached = Attached(full, tenant.spec.plan, tenant.created, read.keys.keys)
        ends = max((key.end for key in read.keys.keys), default=math.inf)
        return Verdict(None, read, reading, blind, ends), attached

    def _to_look_at(self, client: Client, roster: Roster) -> set[Name]:
        """Return the tenants of which it is time to look again at what was no look."""
        found = set()
        for name in roster.holding:
            verdict = roster.verdicts[name]
            listed = unlisted(client.store, name[0], self.holds, roster.spent)
            if (verdict.read.unread and self.holds.due("/".join(name))) or listed != verdict.unlisted:
                found.add(name)
        return found

    def _unseen(
        self, client: Client, gateway: Gateway, roster: Roster, admission: Admission
    ) -> dict[Name, Attached]:
        """Take over the tenants that are only known from what was written; return those that count still,
        and that the gateway lets in as its spec is now."""
        home = (gateway.namespace, gateway.name)
        members: dict[Name, Attached] = {}
        for name, before in list(roster.unseen.items()):
            blind = unlisted(client.store, name[0], self.holds, roster.spent)
            ended = next((unread for unread in blind if unread.over), None)
            roster.unseen[name] = ended or next(iter(blind), before)
            if client.store.get(TENANT_KIND, *name) is not None:
                del roster.unseen[name]
                if name not in client.store.attached.members(home):
                    roster.book.drop("/".join(name))
                continue
            written = roster.found.attached("/".join(name))
            if blind and not ended and refusal_of(gateway, name, written.plan, admission) is None:
                members[name] = written
                continue
            roster.book.drop("/".join(name))
            if not blind:
                del roster.unseen[name]
        return members

    async def _tell(self, client: Client, gateway: Gateway, roster: Roster, name: Name) -> None:
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
            why = (
                "is another tenant's key"
                if shared
                else ("is not used: the gateway's limit of keys is reached")
            )
            if not shared and roster.book.is_crowded(tenant.tenant):
                why += " for its namespace"
            faults.append(KeyFault(key.name, reason, f"{FIELD}[{key.name}] {why}"))
        unwritten = unwritten_reason(gateway, roster, tenant)
        if verdict.lost:
            unwritten = Problem(UnreadReason.HOLD_ENDED, "the tenant's keys are no longer accepted")
        before = live.get("status") or {}
        await write_status(client, tenant, before, verdict.refused, keys, faults, unwritten)

    def _refuse(self, roster: Roster, shard: int, problem: Problem) -> None:
        roster.refused[shard] = problem
        roster.written.pop(shard, None)
        self._tell_of(roster, shard)

    @staticmethod
    def _tell_of(roster: Roster, shard: int) -> None:
        """Have the tenants of a shard told."""
        roster.untold |= {
            name
            for name, verdict in roster.verdicts.items()
            if verdict.refused is None and shard in roster.book.shards_of("/".join(name), verdict.keys.keys)
        }
