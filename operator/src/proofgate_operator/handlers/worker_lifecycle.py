"""Start and retirement of workers: queries to workers and HAProxy before a decision, commands to workers
after it."""

from collections.abc import Callable
from dataclasses import replace

from proofgate_operator import metrics
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import statefulset
from proofgate_operator.build.gateway_secrets import ADMIN_TOKEN
from proofgate_operator.build.naming import Manifest, names, selector_labels
from proofgate_operator.kube.apply import apply
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.balancers import load_balanced_condition
from proofgate_operator.plan.decide import ReconcilePlan
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.pods import is_ready
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.shards import read_shards, shards_to_query, should_query_balancers
from proofgate_operator.workers.admin_port import AdminPort
from proofgate_operator.workers.reports import WorkerReports


async def with_reports(
    workers: WorkerReports, gateway: Gateway, status: Manifest, seen: ObservedState
) -> ObservedState:
    """Return the observed state together with the workers' reports; `status` is the gateway's status."""
    key = (gateway.namespace, gateway.name)
    seen = replace(
        seen,
        previous_shards=tuple(status.get("shards") or ()),
        now=workers.now(),
        pod_durations=workers.pod_durations(*key, seen.worker_pods),
        worker_reports=workers.cached_reports(*key, seen.worker_pods),
    )
    live = seen.child("StatefulSet", names(gateway).worker)
    shards = read_shards(seen, live)
    reports = await workers.reports(*key, seen.worker_pods, shards_to_query(shards))
    asked = live["spec"]["replicas"] if live else 0
    balancers = {}
    if should_query_balancers(seen, shards, asked, gateway.spec.replicas):
        balancers = await workers.balancers.reports(*key, seen.haproxy_pods)
    return replace(seen, worker_reports=reports, balancer_reports=balancers)


async def mark_load_balanced(
    client: Client, plan: ReconcilePlan, now: float, log: Callable[..., None]
) -> list[str]:
    """Set the condition that makes a worker's pod Ready, for each worker that every HAProxy has found. Return
    the refused writes."""
    refused = []
    for pod in plan.discovered_pods:
        name = pod["metadata"]["name"]
        try:
            await apply(client, load_balanced_condition(pod, time_of(now)), subresource="status")
        except ApiError as error:
            if error.transient:
                raise
            # A pod that is deleted or replaced by now is observed by the next reconcile.
            if error.status not in (404, 409):
                refused.append(f"Pod {name}: {error.reason}: {error.message}")
            continue
        metrics.WRITES.labels("Pod", "status").inc()
        log("every HAProxy sends connections to %s", name)
    return refused


async def retire_and_replace_workers(
    client: Client,
    admin_port: AdminPort,
    gateway: Gateway,
    seen: ObservedState,
    plan: ReconcilePlan,
    log: Callable[..., None],
) -> list[str]:
    """Ask workers to stay or to retire, and delete the pod that has to be replaced. Return the refused
    deletions.

    A worker that does not receive the command gets it again in the next reconcile. Its drain period is not
    extended.
    """
    secret = seen.child("Secret", names(gateway).admin)
    token = (
        entry(secret, ADMIN_TOKEN) if secret and (plan.retirements_to_cancel or plan.pods_to_retire) else None
    )
    for pods, tell, told in (
        (plan.retirements_to_cancel, admin_port.cancel_retirement, "cancelled the retirement of %s"),
        (plan.pods_to_retire, admin_port.retire, "asked %s to retire"),
    ):
        for pod in pods:
            name = pod["metadata"]["name"]
            if token and await tell(pod, token.strip()):
                log(told, name)
            else:
                log("%s cannot be reached on its admin port", name)
    refused = []
    for pod in plan.pods_to_replace:
        metadata = pod["metadata"]
        gone = await _newly_unready(client, gateway, seen, pod)
        if gone:
            log("Pod %s is not deleted now: %s is no longer ready", metadata["name"], gone)
            continue
        try:
            await client.delete("Pod", gateway.namespace, metadata["name"], metadata["uid"])
        except ApiError as error:
            if error.transient:
                raise
            refused.append(f"Pod {metadata['name']}: {error.reason}: {error.message}")
            continue
        metrics.WRITES.labels("Pod", "delete").inc()
        log("deleted Pod %s: its successor is created from the newest template", metadata["name"])
    return refused


async def _newly_unready(
    client: Client, gateway: Gateway, seen: ObservedState, leaving: Manifest
) -> str | None:
    """Return another worker than the leaving one that was observed ready and is not ready now; None if no
    such worker exists.

    A watch that broke silently may have left an old state in the store, so the API server is asked before a
    pod is deleted.
    """
    labels = selector_labels(gateway, statefulset.COMPONENT)
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    found = await client.list("Pod", gateway.namespace, selector)
    live = {pod["metadata"]["uid"] for pod in found if is_ready(pod)}
    others = (pod for pod in seen.worker_pods if pod["metadata"]["name"] != leaving["metadata"]["name"])
    return next(
        (pod["metadata"]["name"] for pod in others if is_ready(pod) and pod["metadata"]["uid"] not in live),
        None,
    )
