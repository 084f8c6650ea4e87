"""Reads GatewayTenant objects, admits them, writes their keys into their gateway's shards and reports their
status.

The result for each tenant is kept in memory, without any key, so that a reconcile only processes changes.
After a start, the memory is empty: the keys of all tenants are read again before anything is written.
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
from proofgate_operator.build.owners import WorkerShares
from proofgate_operator.build.tenant_shards import SHARDS, TENANTS, shard_secret
from proofgate_operator.handlers.roster import (
    Roster,
    TenantVerdict,
    WrittenShard,
    build_admission,
    has_shards,
    load_roster,
    newly_expired_tenants,
    published_stamp,
    selected_namespaces,
    selector_read_owner,
    unreadable_resources,
    unwritten_reason,
)
from proofgate_operator.handlers.tenant_key_secrets import (
    FIELD,
    is_status_current,
    read_secrets,
    unlistable_resources,
)
from proofgate_operator.handlers.tenant_objects import read_tenant, write_status
from proofgate_operator.kube.apply import apply
from proofgate_operator.kube.attached_tenants import NamespacedName
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.failed_reads import FailedReads
from proofgate_operator.plan.api_keys import KeyFault
from proofgate_operator.plan.attachment import Admission, attachment_refusal, named_attachment_refusal
from proofgate_operator.plan.haproxy_sidecar import owners_input
from proofgate_operator.plan.observed_state import TenantShards
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.tenant_registry import AttachedTenant
from proofgate_operator.plan.unreadable_resources import UnreadableReason

#: Concurrent requests for the tenants of one gateway.
_CONCURRENCY = 8
#: The maximum number of statuses that one reconcile writes, so that status writes do not delay the gateway
#: itself.
_MAX_STATUS_WRITES = 256


class Attachments:
    """The tenants of all gateways of one process."""

    def __init__(self, failed_reads: FailedReads | None = None) -> None:
        self._rosters: dict[NamespacedName, Roster] = {}
        self.failed_reads = failed_reads or FailedReads()

    def remove_gateway(self, namespace: str, gateway: str) -> None:
        """Drop the records of a deleted gateway."""
        roster = self._rosters.pop((namespace, gateway), None)
        self.failed_reads.retain(f"{namespace}/{gateway} secrets")
        if roster is None:
            return
        for name in roster.unreadable_tenants:
            self.failed_reads.retain("/".join(name))
        for selector in roster.selectors:
            self.failed_reads.retain(selector_read_owner(namespace, gateway, selector))

    def has_unreadable_tenants(self, namespace: str, gateway: str) -> bool:
        """Return whether the last known state applies to any of a gateway's tenants because a read currently
        fails."""
        roster = self._rosters.get((namespace, gateway))
        return roster is not None and bool(
            roster.unreadable_tenants or roster.unlisted_tenants or roster.unreadable_selectors
        )

    def next_key_expiry(self, namespace: str, gateway: str, now: float) -> float:
        """Return the next time after `now` at which all keys of a tenant of the gateway have expired, in
        seconds since 1970 (infinity if there is no such time)."""
        roster = self._rosters.get((namespace, gateway))
        verdicts = roster.verdicts.values() if roster else ()
        return min((verdict.expires_at for verdict in verdicts if verdict.expires_at > now), default=math.inf)

    async def refresh(self, client: Client, gateway: Gateway, listed: Callable[[], Set[str]]) -> TenantShards:
        """Process the changes of a gateway's tenants, and return the desired content of their shards.

        `listed` returns the digests of the keys in the gateway's own list. The last known state of a
        namespace or a Secret that cannot be read applies for `GRACE_SECONDS`.
        """
        home = (gateway.namespace, gateway.name)
        attached = client.store.attached
        roster = self._rosters.get(home)
        begins = roster is None or roster.uid != gateway.uid
        closed = gateway.spec.allowed_tenants is None and not attached.members(home)
        if closed and not has_shards(client, gateway):
            self._rosters.pop(home, None)
            attached.take_changed(home)
            return TenantShards()
        changed = attached.take_changed(home)
        try:
            if roster is None or begins:
                roster = await load_roster(client, gateway, self.failed_reads)
                changed |= attached.members(home)
            changed |= self._due_for_retry(client, roster)
            await self._reevaluate(client, gateway, roster, changed)
        except BaseException:
            attached.restore_changed(home, changed)
            raise
        self._rosters[home] = roster
        roster.registry.reserve(frozenset(listed()))
        for full in roster.registry.touched:
            namespace, _, tenant = full.partition("/")
            roster.unreported.add((namespace, tenant))
        roster.registry.touched.clear()
        for shard, written in list(roster.written.items()):
            name = names(gateway).tenant_shard(shard)
            if client.store.version("Secret", gateway.namespace, name) != written.version:
                # Another client changed or deleted it.
                del roster.written[shard]
        if gateway.spec.allowed_tenants is None:
            # No process reads the shards, even if tenants still have to be removed from them.
            return TenantShards()
        return TenantShards(
            tuple(roster.registry.digest(shard) for shard in range(SHARDS)),
            published_stamp(roster),
            roster.registry.names if gateway.spec.ledger.shred_keys else frozenset(),
            unreadable_resources(roster),
        )

    async def publish(
        self, client: Client, gateway: Gateway, workers: int, shares: WorkerShares
    ) -> tuple[bool, list[str]]:
        """Write the changed shards. Return whether any write changed an object, and the messages of the
        refused writes."""
        roster = self._rosters.get((gateway.namespace, gateway.name))
        if roster is None:
            return False, []
        owning = owners_input(gateway, workers, shares)

        def owner_of(tenant: str, plan: str) -> str | None:
            return attached_entry(gateway, tenant, plan, workers, shares) if owning else None

        changed = False
        for shard in roster.registry.shards_in_write_order:
            digest = roster.registry.digest(shard)
            written = roster.written.get(shard)
            if written is not None and written.digest == digest and written.owners_input in (None, owning):
                continue
            files = roster.registry.files(shard, owner_of)
            whose = owning if files[TENANTS] else None
            name = names(gateway).tenant_shard(shard)
            # Most gateways have few tenants: do not request each empty shard that no one created.
            idle = not any(files.values()) and client.store.lacks_secret(gateway.namespace, name)
            live = None if idle else await client.get("Secret", gateway.namespace, name)
            standing = classify(gateway, live)
            if roster.refusals.pop(shard, None):
                self._queue_shard_reports(roster, shard)
            if standing in (Ownership.ABSENT, Ownership.FOREIGN) and not any(files.values()):
                # The shard is empty, and there is no Secret of ours to update.
                version = live["metadata"]["resourceVersion"] if live else ""
                roster.written[shard] = WrittenShard(digest, None, version)
                continue
            if standing in (Ownership.FOREIGN, Ownership.LEAVING):
                message = f"Secret {name} belongs to another owner, or is being deleted"
                self._record_refusal(roster, shard, Problem("NameTaken", message))
                continue
            try:
                answer = await apply(client, shard_secret(gateway, shard, files, whose or ""))
            except ApiError as error:
                if error.transient:
                    raise
                # The error message might quote the Secret.
                self._record_refusal(roster, shard, Problem("ApplyFailed", f"Secret {name}: {error.reason}"))
                continue
            metrics.WRITES.labels("Secret", "apply").inc()
            version = answer["metadata"]["resourceVersion"]
            roster.written[shard] = WrittenShard(digest, whose, version)
            changed |= live is None or live["metadata"]["resourceVersion"] != version
        roster.owners_input = owning
        return changed, [problem.message for problem in roster.refusals.values()]

    async def report(self, client: Client, gateway: Gateway) -> bool:
        """Write the status of the tenants with changes; return whether some are left for the next call."""
        home = (gateway.namespace, gateway.name)
        roster = self._rosters.get(home)
        if roster is None:
            return False
        roster.unreported |= newly_expired_tenants(roster, time.time())
        now = sorted(roster.unreported)[:_MAX_STATUS_WRITES]
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def tell(tenant: NamespacedName) -> None:
            async with gate:
                await self._report_tenant(client, gateway, roster, tenant)
            roster.unreported.discard(tenant)

        await asyncio.gather(*(tell(tenant) for tenant in now))
        return bool(roster.unreported)

    async def _reevaluate(
        self, client: Client, gateway: Gateway, roster: Roster, changed: set[NamespacedName]
    ) -> None:
        selected = await selected_namespaces(client, gateway, roster, self.failed_reads)
        if roster.generation != gateway.generation or roster.namespaces_by_selector != selected:
            # Evaluate all tenants again (admission and plans); no key is read.
            changed |= client.store.attached.members((gateway.namespace, gateway.name))
        admission = build_admission(client, gateway, selected, changed)
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def judged(tenant: NamespacedName) -> tuple[TenantVerdict | None, AttachedTenant | None]:
            async with gate:
                return await self._evaluate(client, gateway, roster, admission, tenant)

        order = sorted(changed)
        found = zip(order, await asyncio.gather(*map(judged, order)), strict=True)
        # Only after all are read: the order of the reads must not decide which tenant gets a key or capacity.
        accepted = self._restore_unlisted(client, gateway, roster, admission)
        for name, (verdict, attached) in found:
            if verdict is None:
                roster.verdicts.pop(name, None)
            else:
                roster.verdicts[name] = verdict
            if verdict is not None and verdict.unreadable:
                roster.unreadable_tenants.add(name)
            else:
                roster.unreadable_tenants.discard(name)
                self.failed_reads.retain("/".join(name))
            if attached is None:
                roster.registry.remove("/".join(name))
            else:
                accepted[name] = attached
        refused = roster.registry.update_tenants(*accepted.values())
        for name, attached in accepted.items():
            if attached.name in refused:
                message = "the gateway's limit of tenants is reached, in total or for this namespace"
                roster.verdicts[name] = TenantVerdict(Problem("NoRoom", message))
        roster.generation, roster.namespaces_by_selector = gateway.generation, selected
        roster.unreported |= changed

    async def _evaluate(
        self,
        client: Client,
        gateway: Gateway,
        roster: Roster,
        admission: Admission,
        name: NamespacedName,
    ) -> tuple[TenantVerdict | None, AttachedTenant | None]:
        """Evaluate one tenant. Return its verdict (None if it does not belong to this gateway), and its entry
        for the registry (None if it is not admitted)."""
        store, full = client.store, "/".join(name)
        tenant = read_tenant(store.get(TENANT_KIND, *name))
        if tenant is None or tenant.gateway_key != (gateway.namespace, gateway.name):
            return None, None
        refused = attachment_refusal(gateway, tenant, admission)
        if refused is not None:
            store.attached.set_secrets(name, frozenset())
            return TenantVerdict(refused), None
        blind = unlistable_resources(store, name[0], self.failed_reads, roster.hold_elapsed_seconds)
        if any(unread.is_expired for unread in blind):
            return TenantVerdict(unlisted=blind), None
        # Before the Secrets are read, so that a later change of them requeues the tenant.
        store.attached.set_secrets(name, frozenset((tenant.namespace, secret) for secret in tenant.secrets))
        versions = tuple((secret, store.version("Secret", name[0], secret)) for secret in tenant.secrets)
        reading = (tenant.uid, tenant.generation, versions)
        before = roster.verdicts.get(name)
        # A failed read does not count as done.
        done = before is not None and before.source_versions == reading
        if (
            before is not None
            and done
            and not (before.keys_read.unreadable and self.failed_reads.is_retry_due(full))
        ):
            read = before.keys_read
        else:
            known = (
                roster.previously_written.digests(full)
                if is_status_current(store.get(TENANT_KIND, *name), tenant.generation)
                else {}
            )
            read = await read_secrets(
                client, self.failed_reads, tenant, before.keys_read if before else None, known
            )
        attached = AttachedTenant(full, tenant.spec.plan, tenant.created, read.keys.keys)
        ends = max((key.expires_at for key in read.keys.keys), default=math.inf)
        return TenantVerdict(None, read, reading, blind, ends), attached

    def _due_for_retry(self, client: Client, roster: Roster) -> set[NamespacedName]:
        """Return the tenants whose failed reads have to be repeated now."""
        found = set()
        for name in roster.unreadable_tenants:
            verdict = roster.verdicts[name]
            listed = unlistable_resources(
                client.store, name[0], self.failed_reads, roster.hold_elapsed_seconds
            )
            if (
                verdict.keys_read.unreadable and self.failed_reads.is_retry_due("/".join(name))
            ) or listed != verdict.unlisted:
                found.add(name)
        return found

    def _restore_unlisted(
        self, client: Client, gateway: Gateway, roster: Roster, admission: Admission
    ) -> dict[NamespacedName, AttachedTenant]:
        """Process the tenants that are known only from the written shards. Return those that still apply and
        that the gateway's current spec admits."""
        home = (gateway.namespace, gateway.name)
        members: dict[NamespacedName, AttachedTenant] = {}
        for name, before in list(roster.unlisted_tenants.items()):
            blind = unlistable_resources(
                client.store, name[0], self.failed_reads, roster.hold_elapsed_seconds
            )
            ended = next((unread for unread in blind if unread.is_expired), None)
            roster.unlisted_tenants[name] = ended or next(iter(blind), before)
            if client.store.get(TENANT_KIND, *name) is not None:
                del roster.unlisted_tenants[name]
                if name not in client.store.attached.members(home):
                    roster.registry.remove("/".join(name))
                continue
            written = roster.previously_written.attached_tenant("/".join(name))
            if (
                blind
                and not ended
                and named_attachment_refusal(gateway, name, written.plan, admission) is None
            ):
                members[name] = written
                continue
            roster.registry.remove("/".join(name))
            if not blind:
                del roster.unlisted_tenants[name]
        return members

    async def _report_tenant(
        self, client: Client, gateway: Gateway, roster: Roster, name: NamespacedName
    ) -> None:
        live = client.store.get(TENANT_KIND, *name)
        tenant, verdict = read_tenant(live), roster.verdicts.get(name)
        if live is None or tenant is None or verdict is None:
            return
        lacking = {key.digest: key for key in roster.registry.missing_keys(tenant.qualified_name)}
        keys = [key for key in verdict.keys.keys if key.digest not in lacking]
        faults = [*verdict.keys.faults]
        for key in lacking.values():
            # Do not disclose who holds the key.
            shared = roster.registry.holder(key.digest) is not None or key.digest in roster.registry.reserved
            reason = "KeyShared" if shared else "NoRoom"
            why = (
                "is another tenant's key"
                if shared
                else ("is not used: the gateway's limit of keys is reached")
            )
            if not shared and roster.registry.is_over_share(tenant.qualified_name):
                why += " for its namespace"
            faults.append(KeyFault(key.name, reason, f"{FIELD}[{key.name}] {why}"))
        unwritten = unwritten_reason(gateway, roster, tenant)
        if verdict.is_expired:
            unwritten = Problem(UnreadableReason.GRACE_ENDED, "the tenant's keys are no longer accepted")
        before = live.get("status") or {}
        await write_status(client, tenant, before, verdict.refusal, keys, faults, unwritten)

    def _record_refusal(self, roster: Roster, shard: int, problem: Problem) -> None:
        roster.refusals[shard] = problem
        roster.written.pop(shard, None)
        self._queue_shard_reports(roster, shard)

    @staticmethod
    def _queue_shard_reports(roster: Roster, shard: int) -> None:
        """Queue a status write for each tenant of a shard."""
        roster.unreported |= {
            name
            for name, verdict in roster.verdicts.items()
            if verdict.refusal is None
            and shard in roster.registry.shards_of("/".join(name), verdict.keys.keys)
        }
