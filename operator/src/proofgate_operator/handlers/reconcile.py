"""One reconcile of one gateway: observe, decide, write, report.

A reconcile needs no result of the previous one, so it does not matter where the previous one stopped.
"""

import logging
import math
import time
from dataclasses import dataclass, replace

from proofgate_schema.error_messages import plain_message
from pydantic import ValidationError

from proofgate_operator import metrics
from proofgate_operator.api import API_VERSION, KIND
from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType, merge_conditions
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Defaults, Manifest
from proofgate_operator.events import build_event, condition_event, reportable_transitions
from proofgate_operator.handlers.apply_history import ApplyHistory
from proofgate_operator.handlers.attachments import Attachments
from proofgate_operator.handlers.audit_poller import create_finding_events, with_audit_report
from proofgate_operator.handlers.execution import Logger, collect_refusals, execute
from proofgate_operator.handlers.worker_lifecycle import (
    mark_load_balanced,
    retire_and_replace_workers,
    with_reports,
)
from proofgate_operator.kube.apply import apply, create
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.failed_reads import describe_failed_read
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome
from proofgate_operator.observe import observe
from proofgate_operator.plan.conditions import unreadable_spec_message
from proofgate_operator.plan.decide import ReconcilePlan, decide
from proofgate_operator.plan.kstatus import kstatus_condition
from proofgate_operator.plan.observed_state import ObservedState, ref_of, referenced_secrets
from proofgate_operator.plan.partial_observation import restrict_to_keys, retain_conditions
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.status import Status
from proofgate_operator.plan.tenants import listed_digests
from proofgate_operator.plan.unreadable_resources import UnreadableResource
from proofgate_operator.workers.reports import WorkerReports

#: The number of consecutive failed reconciles from which the status reports the API server's errors.
_PERSISTENT_FAILURES = 3


@dataclass(frozen=True)
class ReconcileResult:
    """The result of a reconcile: whether the gateway exists, whether a write changed anything, and whether
    one was refused. `settled`: nothing changes unless an event occurs. `time_driven`: the next step needs
    only time. `secrets`: the Secrets that the gateway names. `due_in`: seconds until the status changes by
    itself."""

    exists: bool
    changed: bool = False
    failed: bool = False
    settled: bool = False
    time_driven: bool = False
    secrets: frozenset[str] = frozenset()
    due_in: float = math.inf


def _with_refusals(status: Status, refused: list[str]) -> tuple[Condition, ...]:
    """Return the conditions; a refusal by the API server becomes the reason for the missing progress."""
    if not refused:
        return status.conditions
    stuck = Condition(ConditionType.PROGRESSING, ConditionStatus.FALSE, "ApplyFailed", "; ".join(refused))
    return tuple(
        stuck if condition.type is ConditionType.PROGRESSING else condition for condition in status.conditions
    )


def _status_manifest(
    gateway: Gateway, seen: ObservedState, status: Status, conditions: tuple[Condition, ...]
) -> Manifest:
    content: Manifest = {
        "observedGeneration": gateway.generation,
        "replicas": status.replicas,
        "readyReplicas": status.ready_replicas,
        "updatedReplicas": status.updated_replicas,
        "selector": status.selector,
        "endpoint": status.endpoint,
        "conditions": merge_conditions(
            seen.previous_conditions, conditions, gateway.generation, time_of(time.time())
        ),
    }
    if status.shards:
        content["shards"] = list(status.shards)
    if status.faults:
        content["faults"] = list(status.faults)
    if status.ledger:
        content["ledger"] = status.ledger
    if status.auditor:
        content["auditor"] = status.auditor
    if status.keeping:
        content["keeping"] = status.keeping
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": gateway.name, "namespace": gateway.namespace},
        "status": content,
    }


async def _report(
    client: Client,
    gateway: Gateway,
    live: Manifest,
    seen: ObservedState,
    plan: ReconcilePlan,
    refused: list[str],
    persistent: bool,
) -> list[str]:
    """Write the status, create Events for changes, and set the metrics. Return the message of a refused
    status write, which does not stop the rest."""
    conditions = _with_refusals(plan.status, refused)
    conditions = (*conditions, *kstatus_condition(conditions))
    manifest = _status_manifest(gateway, seen, plan.status, conditions)
    unwritten: list[str] = []
    if (live.get("status") or {}) != manifest["status"]:
        with collect_refusals(unwritten, ref_of(manifest), persistent):
            await apply(client, manifest, subresource="status")
            metrics.WRITES.labels(KIND, "status").inc()
        for condition in reportable_transitions(seen.previous_conditions, conditions):
            try:
                # An Event that no status remembers is created again by each reconcile.
                told = condition_event(gateway, condition, time_of(time.time()), once=bool(unwritten))
                await create(client, told)
            except ApiError as error:
                # Events are best effort: a namespace that refuses one must not stop the reconcile.
                logging.getLogger(__name__).debug("event refused: %s", error.reason)
    for gauge, kind in (
        (metrics.READY, ConditionType.READY),
        (metrics.AVAILABLE, ConditionType.AVAILABLE),
    ):
        gauge.labels(gateway.namespace, gateway.name).set(1 if plan.status.condition(kind).is_true else 0)
    if gateway.enabled_auditor:
        held = plan.status.condition(ConditionType.AUDITED).is_true
        metrics.AUDITED.labels(gateway.namespace, gateway.name).set(1 if held else 0)
    else:
        metrics.remove_auditor(gateway.namespace, gateway.name)
    if gateway.spec.keeping:
        failed = plan.status.condition(ConditionType.KEPT).status is ConditionStatus.FALSE
        metrics.KEPT.labels(gateway.namespace, gateway.name).set(0 if failed else 1)
    else:
        metrics.remove_retention(gateway.namespace, gateway.name)
    return unwritten


def unreadable_fields(error: ValidationError) -> list[str]:
    """Return a message per invalid field with what the field must be, without the field's value."""
    details = error.errors(include_url=False)
    # pydantic removes an invalid entry, and then also reports it as missing.
    within = {detail["loc"][:length] for detail in details for length in range(1, len(detail["loc"]))}
    kept = [detail for detail in details if not (detail["type"] == "too_short" and detail["loc"] in within)]
    return [f"{'.'.join(map(str, detail['loc']))}: {plain_message(detail)}" for detail in kept]


async def _report_unreadable(client: Client, live: Manifest, error: ValidationError) -> None:
    """Report what is wrong with the spec; the rest of the status stays as it was."""
    faults = unreadable_fields(error)
    metadata, before = live["metadata"], live.get("status") or {}
    conditions = before.get("conditions") or []
    told = merge_conditions(
        conditions, unreadable_spec_message(faults), metadata["generation"], time_of(time.time())
    )
    over = {*(new["type"] for new in told), ConditionType.RECONCILING}
    kept = [condition for condition in conditions if condition["type"] not in over]
    status = {**before, "observedGeneration": metadata["generation"], "conditions": [*told, *kept]}
    if before != status:
        head = {"name": metadata["name"], "namespace": metadata["namespace"]}
        manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": head, "status": status}
        await apply(client, manifest, subresource="status")
        metrics.WRITES.labels(KIND, "status").inc()


async def _report_inaccessible(client: Client, live: Manifest, unread: list[UnreadableResource]) -> None:
    """Report the resources that cannot be read, which prevents any decision; the rest of the status stays as
    it was."""
    metadata, before = live["metadata"], live.get("status") or {}
    previous = before.get("conditions") or []
    conditions = retain_conditions(previous, unread[0].reason, (found.message for found in unread))
    metrics.FAILING_READS.labels(metadata["namespace"], metadata["name"]).set(len(unread))
    told = merge_conditions(previous, conditions, metadata["generation"], time_of(time.time()))
    seen = {found["type"]: found.get("observedGeneration") for found in previous}
    # Only the conditions written here are about the current spec.
    told = [
        found | {"observedGeneration": seen.get(found["type"], metadata["generation"])}
        if found["type"] != ConditionType.RESOLVED_REFS
        else found
        for found in told
    ]
    status = {**before, "conditions": told}
    if before == status:
        return
    head = {"name": metadata["name"], "namespace": metadata["namespace"]}
    manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": head, "status": status}
    try:
        await apply(client, manifest, subresource="status")
        metrics.WRITES.labels(KIND, "status").inc()
        for condition in reportable_transitions(previous, conditions):
            about = (metadata["namespace"], metadata["name"], metadata["uid"], "Warning", condition.reason)
            message = f"{condition.type} is {condition.status}: {condition.message}"
            await create(client, build_event(*about, message, time_of(time.time())))
    except ApiError as error:
        # Without permission to read, the operator may also lack permission to write: the log always has the
        # message.
        logging.getLogger(__name__).debug("cannot report an unreadable manifest: %s", error.reason)


async def report_other_release(client: Client, live: Manifest, own: str, holder: str) -> None:
    """Create an Event that another release manages the gateway. The status belongs to that release."""
    metadata = live["metadata"]
    message = (
        f"release {holder} serves namespace {metadata['namespace']}, so release {own} ignores this "
        "namespace: configure only one of the two releases to serve it"
    )
    try:
        await create(
            client,
            build_event(
                metadata["namespace"],
                metadata["name"],
                metadata["uid"],
                "Warning",
                "ServedByAnother",
                message,
                time_of(time.time()),
            ),
        )
    except ApiError as error:
        logging.getLogger(__name__).debug("event refused: %s", error.reason)


def _is_settled(gateway: Gateway, plan: ReconcilePlan) -> bool:
    """Return whether every pending change is reported by a watch."""
    if plan.has_writes or plan.time_driven:
        return False
    progressing = plan.status.condition(ConditionType.PROGRESSING).status
    ready = plan.status.condition(ConditionType.READY).is_true
    return gateway.spec.paused or (ready and progressing is ConditionStatus.FALSE)


async def reconcile(
    client: Client,
    namespace: str,
    name: str,
    uid: str,
    defaults: Defaults,
    logger: Logger,
    workers: WorkerReports,
    writes: ApplyHistory,
    failures: int = 0,
    attachments: Attachments | None = None,
) -> ReconcileResult:
    """Bring one gateway closer to its spec and report; raises `ApiError` if the API server cannot be used.

    `failures` is the number of consecutive failed reconciles so far.
    """
    client.store.is_watched(KIND)
    live = client.store.get(KIND, namespace, name)
    if live is None or live["metadata"].get("deletionTimestamp"):
        return ReconcileResult(exists=False)
    if live["metadata"]["uid"] != uid:
        # A new gateway of the same name: it has its own loop.
        return ReconcileResult(exists=False)
    attachments = attachments or Attachments()
    barred = client.store.blocked_kinds(namespace)
    if barred:
        await _report_inaccessible(client, live, [describe_failed_read(found.failure) for found in barred])
        client.store.require(namespace)
    try:
        return await _reconcile(client, live, defaults, logger, workers, writes, failures, attachments)
    except ReadFailed as error:
        if error.outcome is ReadOutcome.ACCESS_DENIED or failures >= _PERSISTENT_FAILURES:
            await _report_inaccessible(client, live, [describe_failed_read(error)])
        raise


async def _reconcile(
    client: Client,
    live: Manifest,
    defaults: Defaults,
    logger: Logger,
    workers: WorkerReports,
    writes: ApplyHistory,
    failures: int,
    attachments: Attachments,
) -> ReconcileResult:
    """Reconcile a gateway whose objects can all be listed; raises `ReadFailed` if an object cannot be
    read."""
    started = time.monotonic()
    namespace, name = live["metadata"]["namespace"], live["metadata"]["name"]
    try:
        gateway = Gateway.from_manifest(live)
    except ValidationError as error:
        await _report_unreadable(client, live, error)
        return ReconcileResult(exists=True, settled=True)
    seen = await observe(client, gateway, live, attachments.failed_reads)
    seen = await with_reports(workers, gateway, live.get("status") or {}, seen)
    seen = await with_audit_report(workers.audits, gateway, seen)
    told = await workers.request_probes.reports(namespace, name, seen.haproxy_pods)
    seen = replace(seen, request_probes=told)
    tenants = await attachments.refresh(client, gateway, lambda: listed_digests(gateway, seen))
    seen = replace(
        seen,
        apply_results=writes.results(namespace, name),
        attempted_digests=writes.attempted_digests(namespace, name),
        tenants=tenants,
        unavailable_kinds=tuple(map(describe_failed_read, client.store.unavailable_reasons(namespace))),
    )
    plan, persistent = (
        restrict_to_keys(gateway, seen, decide(gateway, seen, defaults)),
        failures >= _PERSISTENT_FAILURES,
    )
    held = [*seen.unreadable_secrets.values(), *tenants.unreadable]
    metrics.FAILING_READS.labels(namespace, name).set(len(held))
    metrics.EXPIRED_READS.labels(namespace, name).set(sum(unread.is_expired for unread in held))
    published, unpublished = False, list[str]()
    if plan.owners_input is not None:
        # First of all writes, so that a removed key is revoked without delay.
        published, unpublished = await attachments.publish(client, gateway, *plan.owners_input)
    done = await execute(client, writes, gateway, seen, plan, logger, persistent)
    refused = (
        unpublished
        + done.refused
        + await retire_and_replace_workers(client, workers.admin_port, gateway, seen, plan, logger.info)
    )
    refused += await mark_load_balanced(client, plan, seen.now, logger.info)
    refused += await _report(client, gateway, live, seen, plan, refused, persistent)
    await create_finding_events(client, workers.audits, gateway, seen)
    untold = await attachments.report(client, gateway)
    metrics.RECONCILE_SECONDS.observe(time.monotonic() - started)
    for refusal in refused:
        logger.warning("refused: %s", refusal)
    return ReconcileResult(
        exists=True,
        changed=done.changed or published or untold or bool(plan.pods_to_replace or plan.discovered_pods),
        failed=bool(refused),
        # Unreadable resources are read again repeatedly: no watch reports when they become readable.
        settled=_is_settled(gateway, plan)
        and not (refused or seen.unreadable_secrets or attachments.has_unreadable_tenants(namespace, name))
        and not workers.awaits_reload(namespace, name),
        time_driven=plan.time_driven,
        secrets=frozenset(referenced_secrets(gateway)),
        due_in=max(min(plan.due_at, attachments.next_key_expiry(namespace, name, seen.now)) - seen.now, 0.0),
    )
