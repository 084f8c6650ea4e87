"""Observes the state of a gateway.

Objects come from the store, which watches and the operator's own writes keep up to date. Objects that are
missing in the store are requested, because a foreign object without the operator's label may have a name that
the gateway needs. Secrets are always requested, so that no key stays in memory between two reconciles.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor, haproxy, retention, statefulset
from proofgate_operator.build.naming import Manifest, names, selector_labels
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.failed_reads import FailedReads, describe_failed_read
from proofgate_operator.kube.reads import ReadFailed, ReadResult
from proofgate_operator.plan.observed_state import (
    ObservedState,
    Ref,
    auditor_refs,
    child_refs,
    is_retention_run,
    is_worker,
    non_tenant_secrets,
    referenced_secrets,
    retention_refs,
    surplus_claims,
)
from proofgate_operator.plan.unreadable_resources import UnreadableResource, hold_started_at

T = TypeVar("T")

#: Concurrent requests for one gateway, so that the Secrets of a hundred tenants do not block other gateways.
_CONCURRENCY = 8


async def _gather_limited(requests: Iterable[Awaitable[T]]) -> list[T]:
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def gated(request: Awaitable[T]) -> T:
        async with gate:
            return await request

    return await asyncio.gather(*(gated(request) for request in requests))


async def _read_object(client: Client, kind: str, namespace: str, name: str) -> Manifest | None:
    known = client.store.get(kind, namespace, name) if client.store.is_watched(kind) else None
    return known or await client.get(kind, namespace, name)


async def observe(client: Client, gateway: Gateway, manifest: Manifest, holds: FailedReads) -> ObservedState:
    """Return the gateway's objects, the Secrets it names and its pods; `manifest` is the gateway itself.

    For a named Secret that cannot be read, the failure is recorded in `holds`. Raises `ReadFailed` if an
    object of the gateway cannot be read.
    """
    refs = child_refs(gateway, await client.has_kind("PodMonitor"))
    secret_names = referenced_secrets(gateway)
    objects = await _gather_limited(
        [_read_object(client, ref.kind, gateway.namespace, ref.name) for ref in refs]
    )
    looks = await _gather_limited([client.read("Secret", gateway.namespace, name) for name in secret_names])
    pods = client.store.list_for_gateway("Pod", gateway.namespace, gateway.name)
    pods_of_workers, balancers, auditors, retention_jobs = (
        tuple(pod for pod in pods if selector.items() <= pod["metadata"]["labels"].items())
        for selector in (
            selector_labels(gateway, statefulset.COMPONENT),
            selector_labels(gateway, haproxy.COMPONENT),
            selector_labels(gateway, auditor.COMPONENT),
            selector_labels(gateway, retention.COMPONENT),
        )
    )
    workers = tuple(pod for pod in pods_of_workers if is_worker(gateway, pod))
    labelled = client.store.list_for_gateway("PersistentVolumeClaim", gateway.namespace, gateway.name)
    own = names(gateway)
    children = dict(zip(refs, objects, strict=True))
    status = manifest.get("status") or {}
    return ObservedState(
        unreadable_secrets=_unreadable_secrets(
            gateway, dict(zip(secret_names, looks, strict=True)), status, holds
        ),
        children={**children, **surplus_claims(gateway, labelled), **_lingering(client, gateway)},
        secrets={name: look.manifest for name, look in zip(secret_names, looks, strict=True)},
        worker_pods=workers,
        stray_pods=tuple(pod["metadata"]["name"] for pod in pods_of_workers if pod not in workers),
        haproxy_pods=balancers,
        previous_conditions=tuple(status.get("conditions") or []),
        ledger_status=status.get("ledger") or {},
        auditor_pod=next((pod for pod in auditors if pod["metadata"]["name"] == f"{own.auditor}-0"), None),
        auditor_status=status.get("auditor") or {},
        retention_pods=tuple(pod for pod in retention_jobs if is_retention_run(gateway, pod)),
        keeping_status=status.get("keeping") or {},
        creation_failure=await _creation_failure(client, children[Ref("StatefulSet", own.worker)], workers),
    )


def _unreadable_secrets(
    gateway: Gateway, looks: Mapping[str, ReadResult], status: Manifest, holds: FailedReads
) -> dict[str, UnreadableResource]:
    """Return the named Secrets that cannot be read. The last known state expires only where it grants
    access."""
    owner = f"{gateway.namespace}/{gateway.name} secrets"
    since = hold_started_at(status.get("conditions") or [], ConditionType.RESOLVED_REFS)
    failures = {name: look.failure for name, look in looks.items() if look.failure is not None}
    other = non_tenant_secrets(gateway)
    found = {
        name: describe_failed_read(failure) if name in other else holds.record_failure(owner, failure, since)
        for name, failure in failures.items()
    }
    holds.retain(owner, [failure.read for failure in failures.values()])
    return found


def _lingering(client: Client, gateway: Gateway) -> dict[Ref, Manifest]:
    """Return the remaining objects of an auditor, a retention job and a Service that the gateway no longer
    has."""
    refs = (
        *(() if gateway.enabled_auditor else auditor_refs(gateway)),
        *(() if gateway.spec.keeping else retention_refs(gateway)),
        *(
            ()
            if gateway.spec.load_balancer.accept_proxy_protocol
            else (Ref("Service", names(gateway).internal_service),)
        ),
    )
    known = ((ref, client.store.get(ref.kind, gateway.namespace, ref.name)) for ref in refs)
    return {ref: live for ref, live in known if live and not live["metadata"].get("deletionTimestamp")}


async def _creation_failure(
    client: Client, workers: Manifest | None, pods: tuple[Manifest, ...]
) -> str | None:
    """Return the newest Event about worker pods that cannot be created, because the StatefulSet's status does
    not report a quota or an admission policy. Events are requested only while pods are missing."""
    if workers is None or len(pods) >= workers["spec"]["replicas"]:
        return None
    head = workers["metadata"]
    fields = f"reason=FailedCreate,involvedObject.kind=StatefulSet,involvedObject.name={head['name']}"
    try:
        events = await client.list("Event", head["namespace"], fields=fields)
    except ReadFailed:
        # Events are optional: if they cannot be read, continue without them.
        return None
    told = [event for event in events if event["involvedObject"].get("uid") == head["uid"]]
    newest = max(told, key=_event_time, default=None)
    return str(newest.get("message") or "") or None if newest else None


def _event_time(event: Manifest) -> str:
    """Return the last occurrence of an Event as RFC 3339 in UTC, which sorts as text."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(time) for time in times if time), "")
