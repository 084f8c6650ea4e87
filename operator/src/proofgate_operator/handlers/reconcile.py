"""One reconcile of one gateway: observe, decide, write, report.

Nothing is needed of the one before, so it does not matter where that one ended.
"""

import logging
import math
import time
from dataclasses import dataclass, replace

from proofgate_schema.plain_words import plain_message
from pydantic import ValidationError

from proofgate_operator import metrics
from proofgate_operator.api import API_VERSION, KIND
from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType, merge
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Defaults, Manifest
from proofgate_operator.events import event, event_of, transitions
from proofgate_operator.handlers.applied import Writes
from proofgate_operator.handlers.attachments import Attachments
from proofgate_operator.handlers.audits import tell_findings, with_audit
from proofgate_operator.handlers.execution import Logger, collected, execute
from proofgate_operator.handlers.steering import say_found, steer, with_reports
from proofgate_operator.kube.apply import apply, create
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.holds import described
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome
from proofgate_operator.observe import observe
from proofgate_operator.plan.conditions import unreadable
from proofgate_operator.plan.decide import Plan, decide
from proofgate_operator.plan.half_seen import as_before, keys_alone
from proofgate_operator.plan.kstatus import kstatus
from proofgate_operator.plan.observed import Observed, named_secrets, ref_of
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.status import Status
from proofgate_operator.plan.tenants import listed_digests
from proofgate_operator.plan.unread import Unread
from proofgate_operator.workers.reports import WorkerReports

#: From so many failed reconciles in a row on, the status tells of what the API server cannot do.
_PERSISTENT = 3


@dataclass(frozen=True)
class Outcome:
    """How a reconcile ended: whether the gateway exists, whether a write changed anything, whether one was
    refused, whether it is at rest (nothing will change unless something else does) or moving (the next step
    takes only time), which Secrets it names, and in how many seconds (`due`) a time comes that changes what
    is to be said."""

    exists: bool
    wrote: bool = False
    failed: bool = False
    at_rest: bool = False
    moving: bool = False
    secrets: frozenset[str] = frozenset()
    due: float = math.inf


def _with_refusals(status: Status, refused: list[str]) -> tuple[Condition, ...]:
    """Return the conditions, with what the API server refused as the reason why there is no progress."""
    if not refused:
        return status.conditions
    stuck = Condition(ConditionType.PROGRESSING, ConditionStatus.FALSE, "ApplyFailed", "; ".join(refused))
    return tuple(
        stuck if condition.type is ConditionType.PROGRESSING else condition for condition in status.conditions
    )


def _status_manifest(
    gateway: Gateway, seen: Observed, status: Status, conditions: tuple[Condition, ...]
) -> Manifest:
    content: Manifest = {
        "observedGeneration": gateway.generation,
        "replicas": status.replicas,
        "readyReplicas": status.ready_replicas,
        "updatedReplicas": status.updated_replicas,
        "selector": status.selector,
        "endpoint": status.endpoint,
        "conditions": merge(seen.conditions, conditions, gateway.generation, time_of(time.time())),
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
    seen: Observed,
    plan: Plan,
    refused: list[str],
    persistent: bool,
) -> list[str]:
    """Write the status, tell what changed, and set the metrics; return what was refused of the first, which
    keeps the others back no more than anything else."""
    conditions = _with_refusals(plan.status, refused)
    conditions = (*conditions, *kstatus(conditions))
    manifest = _status_manifest(gateway, seen, plan.status, conditions)
    unwritten: list[str] = []
    if (live.get("status") or {}) != manifest["status"]:
        with collected(unwritten, ref_of(manifest), persistent):
            await apply(client, manifest, subresource="status")
            metrics.WRITES.labels(KIND, "status").inc()
        for condition in transitions(seen.conditions, conditions):
            try:
                # What no status remembers is told again by each reconcile.
                told = event(gateway, condition, time_of(time.time()), once=bool(unwritten))
                await create(client, told)
            except ApiError as error:
                # An event is a courtesy: a namespace that refuses it is not a reason to stop.
                logging.getLogger(__name__).debug("event refused: %s", error.reason)
    for gauge, kind in (
        (metrics.READY, ConditionType.READY),
        (metrics.AVAILABLE, ConditionType.AVAILABLE),
    ):
        gauge.labels(gateway.namespace, gateway.name).set(1 if plan.status.condition(kind).holds else 0)
    if gateway.auditor:
        held = plan.status.condition(ConditionType.AUDITED).holds
        metrics.AUDITED.labels(gateway.namespace, gateway.name).set(1 if held else 0)
    else:
        metrics.forget_audit(gateway.namespace, gateway.name)
    if gateway.spec.keeping:
        failed = plan.status.condition(ConditionType.KEPT).status is ConditionStatus.FALSE
        metrics.KEPT.labels(gateway.namespace, gateway.name).set(0 if failed else 1)
    else:
        metrics.forget_keeping(gateway.namespace, gateway.name)
    return unwritten


def unreadable_fields(error: ValidationError) -> list[str]:
    """Each field that cannot be read and what it has to be, without its value."""
    details = error.errors(include_url=False)
    # pydantic leaves out an entry that is wrong, and then misses it.
    within = {detail["loc"][:length] for detail in details for length in range(1, len(detail["loc"]))}
    kept = [detail for detail in details if not (detail["type"] == "too_short" and detail["loc"] in within)]
    return [f"{'.'.join(map(str, detail['loc']))}: {plain_message(detail)}" for detail in kept]


async def _report_unreadable(client: Client, live: Manifest, error: ValidationError) -> None:
    """Say what is wrong with the spec; the rest of the status stays as it was."""
    faults = unreadable_fields(error)
    metadata, before = live["metadata"], live.get("status") or {}
    conditions = before.get("conditions") or []
    told = merge(conditions, unreadable(faults), metadata["generation"], time_of(time.time()))
    over = {*(new["type"] for new in told), ConditionType.RECONCILING}
    kept = [condition for condition in conditions if condition["type"] not in over]
    status = {**before, "observedGeneration": metadata["generation"], "conditions": [*told, *kept]}
    if before != status:
        head = {"name": metadata["name"], "namespace": metadata["namespace"]}
        manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": head, "status": status}
        await apply(client, manifest, subresource="status")
        metrics.WRITES.labels(KIND, "status").inc()


async def _report_blind(client: Client, live: Manifest, unread: list[Unread]) -> None:
    """Say what nobody may look at, so that nothing is decided; the rest of the status stays as it was."""
    metadata, before = live["metadata"], live.get("status") or {}
    previous = before.get("conditions") or []
    conditions = as_before(previous, unread[0].reason, (found.message for found in unread))
    metrics.HELD.labels(metadata["namespace"], metadata["name"]).set(len(unread))
    told = merge(previous, conditions, metadata["generation"], time_of(time.time()))
    seen = {found["type"]: found.get("observedGeneration") for found in previous}
    # Only what it tells now is about the spec as it is.
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
        for condition in transitions(previous, conditions):
            about = (metadata["namespace"], metadata["name"], metadata["uid"], "Warning", condition.reason)
            message = f"{condition.type} is {condition.status}: {condition.message}"
            await create(client, event_of(*about, message, time_of(time.time())))
    except ApiError as error:
        # Who may not look may often not write either: the log says it in any case.
        logging.getLogger(__name__).debug("cannot report an unreadable manifest: %s", error.reason)


async def report_other_release(client: Client, live: Manifest, own: str, holder: str) -> None:
    """Say in an Event that another release looks after a gateway: its status is that one's."""
    metadata = live["metadata"]
    message = (
        f"the release {holder} serves namespace {metadata['namespace']}, so {own} does nothing there: "
        "configure only one of them to serve it"
    )
    try:
        await create(
            client,
            event_of(
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


def _at_rest(gateway: Gateway, plan: Plan) -> bool:
    """Return whether nothing is waited for that no watch would tell of."""
    if plan.writes or plan.moving:
        return False
    progressing = plan.status.condition(ConditionType.PROGRESSING).status
    ready = plan.status.condition(ConditionType.READY).holds
    return gateway.spec.paused or (ready and progressing is ConditionStatus.FALSE)


async def reconcile(
    client: Client,
    namespace: str,
    name: str,
    uid: str,
    defaults: Defaults,
    logger: Logger,
    workers: WorkerReports,
    writes: Writes,
    failures: int = 0,
    attachments: Attachments | None = None,
) -> Outcome:
    """Bring one gateway closer to its spec and report; raises `ApiError` if the API server cannot be used.

    `failures` is how many reconciles have failed in a row until now.
    """
    client.store.watches(KIND)
    live = client.store.get(KIND, namespace, name)
    if live is None or live["metadata"].get("deletionTimestamp"):
        return Outcome(exists=False)
    if live["metadata"]["uid"] != uid:
        # Made anew under the same name: it has a loop of its own.
        return Outcome(exists=False)
    attachments = attachments or Attachments()
    barred = client.store.barred_kinds(namespace)
    if barred:
        await _report_blind(client, live, [described(found.failure) for found in barred])
        client.store.require(namespace)
    try:
        return await _reconcile(client, live, defaults, logger, workers, writes, failures, attachments)
    except ReadFailed as error:
        if error.outcome is ReadOutcome.MAY_NOT_LOOK or failures >= _PERSISTENT:
            await _report_blind(client, live, [described(error)])
        raise


async def _reconcile(
    client: Client,
    live: Manifest,
    defaults: Defaults,
    logger: Logger,
    workers: WorkerReports,
    writes: Writes,
    failures: int,
    attachments: Attachments,
) -> Outcome:
    """Reconcile a gateway of which everything can be listed; raises `ReadFailed` where it cannot be seen."""
    started = time.monotonic()
    namespace, name = live["metadata"]["namespace"], live["metadata"]["name"]
    try:
        gateway = Gateway.read(live)
    except ValidationError as error:
        await _report_unreadable(client, live, error)
        return Outcome(exists=True, at_rest=True)
    seen = await observe(client, gateway, live, attachments.holds)
    seen = await with_reports(workers, gateway, live.get("status") or {}, seen)
    seen = await with_audit(workers.audits, gateway, seen)
    told = await workers.answers.reports(namespace, name, seen.haproxy_pods)
    seen = replace(seen, answers=told)
    tenants = await attachments.refresh(client, gateway, lambda: listed_digests(gateway, seen))
    seen = replace(
        seen,
        applied=writes.of(namespace, name),
        tried=writes.tried(namespace, name),
        tenants=tenants,
        unheard=tuple(map(described, client.store.ailing(namespace))),
    )
    plan, persistent = keys_alone(gateway, seen, decide(gateway, seen, defaults)), failures >= _PERSISTENT
    held = [*seen.unread.values(), *tenants.unread]
    metrics.HELD.labels(namespace, name).set(len(held))
    metrics.HOLDS_ENDED.labels(namespace, name).set(sum(unread.over for unread in held))
    published, unpublished = False, list[str]()
    if plan.owning is not None:
        # First of all writes: a key that was taken away waits for nothing.
        published, unpublished = await attachments.publish(client, gateway, *plan.owning)
    done = await execute(client, writes, gateway, seen, plan, logger, persistent)
    refused = (
        unpublished + done.refused + await steer(client, workers.admin_port, gateway, seen, plan, logger.info)
    )
    refused += await say_found(client, plan, seen.now, logger.info)
    refused += await _report(client, gateway, live, seen, plan, refused, persistent)
    await tell_findings(client, workers.audits, gateway, seen)
    untold = await attachments.report(client, gateway)
    metrics.RECONCILE_SECONDS.observe(time.monotonic() - started)
    for refusal in refused:
        logger.warning("refused: %s", refusal)
    return Outcome(
        exists=True,
        wrote=done.changed or published or untold or bool(plan.replace or plan.found),
        failed=bool(refused),
        # What nobody may look at is looked at again and again: no watch tells when it can be.
        at_rest=_at_rest(gateway, plan)
        and not (refused or seen.unread or attachments.holding(namespace, name))
        and not workers.awaited(namespace, name),
        moving=plan.moving,
        secrets=frozenset(named_secrets(gateway)),
        due=max(min(plan.due, attachments.due(namespace, name, seen.now)) - seen.now, 0.0),
    )
