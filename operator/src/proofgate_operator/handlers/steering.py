"""Workers that leave: what they are asked before a decision, and what they are told after it."""

from collections.abc import Callable
from dataclasses import replace

from proofgate_operator import metrics
from proofgate_operator.api.types import Gateway
from proofgate_operator.build.config import ADMIN_TOKEN
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.kube.client import ApiError, Client
from proofgate_operator.kube.workers import Workers
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.decide import Plan
from proofgate_operator.plan.observed import Observed
from proofgate_operator.plan.shards import read_shards, whom_to_ask


async def heard(workers: Workers, gateway: Gateway, status: Manifest, seen: Observed) -> Observed:
    """Return what was seen together with what the workers tell; `status` is the gateway's own."""
    key = (gateway.namespace, gateway.name)
    seen = replace(
        seen,
        shards=tuple(status.get("shards") or ()),
        now=workers.now(),
        reports=workers.last(*key, seen.worker_pods),
    )
    shards = read_shards(seen, seen.child("StatefulSet", names(gateway).worker))
    reports = await workers.reports(*key, seen.worker_pods, whom_to_ask(shards))
    return replace(seen, reports=reports)


async def steer(
    client: Client,
    workers: Workers,
    gateway: Gateway,
    seen: Observed,
    plan: Plan,
    log: Callable[..., None],
) -> list[str]:
    """Tell workers to stay or to retire, and delete the pod that is to be replaced. Returns what was refused.

    A worker that does not hear it is told again at the next look, and not waited for longer than one that
    does.
    """
    secret = seen.child("Secret", names(gateway).admin)
    token = entry(secret, ADMIN_TOKEN) if secret and (plan.stay or plan.retire) else None
    for pods, tell, told in (
        (plan.stay, workers.stay, "told %s to stay"),
        (plan.retire, workers.retire, "told %s to retire"),
    ):
        for pod in pods:
            name = pod["metadata"]["name"]
            if token and await tell(pod, token.strip()):
                log(told, name)
            else:
                log("%s cannot be reached on its admin port", name)
    refused = []
    for pod in plan.replace:
        metadata = pod["metadata"]
        try:
            await client.delete("Pod", gateway.namespace, metadata["name"], metadata["uid"])
        except ApiError as error:
            if error.transient:
                raise
            refused.append(f"Pod {metadata['name']}: {error.reason}: {error.message}")
            continue
        metrics.WRITES.labels("Pod", "delete").inc()
        log("deleted Pod %s: its successor is made from the newest template", metadata["name"])
    return refused
