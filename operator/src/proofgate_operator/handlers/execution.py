"""Executes a plan: applies its writes in order, and collects the API server's refusals."""

import contextlib
import logging
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from proofgate_schema.counts import format_count

from proofgate_operator import metrics
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import gateway_secrets
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.handlers.apply_history import ApplyHistory
from proofgate_operator.handlers.internal_tls import make_internal_tls
from proofgate_operator.handlers.shred_keys import create_missing_shred_keys
from proofgate_operator.kube.apply import annotate, apply, create, merge_patch
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.decide import ReconcilePlan
from proofgate_operator.plan.observed_state import ObservedState, Ref, ref_of

#: A standard logger, or kopf's logger, which adds the object to each record.
Logger = logging.Logger | logging.LoggerAdapter[Any]


@dataclass
class ExecutionResult:
    """The result of a plan: whether anything changed, and what the API server refused."""

    changed: bool = False
    refused: list[str] = field(default_factory=list)


def _generate_secret(gateway: Gateway, name: str) -> Manifest:
    """Create a Secret with random content, for a Secret that is written only once. Nothing else in a plan is
    random."""
    own = names(gateway)
    if name == own.admin:
        return gateway_secrets.admin_secret(gateway, secrets.token_urlsafe(32))
    if name == own.export_key:
        key = SigningKey(gateway_secrets.export_key_name(gateway), os.urandom(32))
        return gateway_secrets.export_key_secret(gateway, key.signing_text, key.verifying_text)
    assert name == own.ledger, name
    key = SigningKey(gateway.ledger_name, os.urandom(32))
    return gateway_secrets.ledger_secret(gateway, key.signing_text, key.verifying_text)


def _describe_refusal(ref: Ref, error: ApiError) -> str:
    """Describe a refused write. The refusal of a Secret might quote it, so its message is left out."""
    said = error.reason if ref.kind == "Secret" else f"{error.reason}: {error.message}"
    return f"{ref}: {said}"


@contextlib.contextmanager
def collect_refusals(refused: list[str], ref: Ref, persistent: bool) -> Iterator[None]:
    """Collect the refusal of a write, so that the other writes continue.

    If the API server is overloaded or fails, `ApiError` is raised: the next reconcile does the remaining
    writes. If it fails repeatedly (`persistent`), one object alone may be the cause, and the failure counts
    as a refusal of that object.
    """
    try:
        yield
    except ApiError as error:
        if error.transient and not (persistent and error.status >= 500):
            raise
        refused.append(_describe_refusal(ref, error))


async def execute(
    client: Client,
    writes: ApplyHistory,
    gateway: Gateway,
    seen: ObservedState,
    plan: ReconcilePlan,
    logger: Logger,
    persistent: bool,
) -> ExecutionResult:
    """Execute a plan. Refused writes are collected."""
    done = ExecutionResult()
    worker = Ref("StatefulSet", names(gateway).worker)

    @contextlib.contextmanager
    def one(ref: Ref, verb: str, told: str) -> Iterator[None]:
        with collect_refusals(done.refused, ref, persistent):
            yield
            metrics.WRITES.labels(ref.kind, verb).inc()
            logger.info("%s %s", told, ref)

    for name in plan.secrets_to_generate:
        with one(Ref("Secret", name), "create", "generated"):
            done.changed |= await create(client, _generate_secret(gateway, name))
    if plan.shred_keys.to_make:
        with one(Ref("Secret", names(gateway).shred_keys), "patch", "created shred keys in"):
            done.changed |= await create_missing_shred_keys(client, gateway, plan.shred_keys)
    if plan.certificate_renewal is not None:
        with one(Ref("Secret", names(gateway).internal_tls), "apply", "renewed the certificates in"):
            await make_internal_tls(client, gateway, plan.certificate_renewal, seen.now)
            done.changed = True
    for ref, patch in plan.prune_label_patches.items():
        with one(ref, "patch", "removed another tool's label from"):
            await merge_patch(client, ref.kind, gateway.namespace, ref.name, patch)
            done.changed = True
    for manifest in plan.manifests_to_apply:
        ref = ref_of(manifest)
        writes.record_attempt(gateway.name, manifest)
        with one(ref, "apply", "applied"):
            if ref in plan.merge_patches:
                await merge_patch(client, ref.kind, gateway.namespace, ref.name, plan.merge_patches[ref])
            answer, live = await apply(client, manifest), seen.children.get(ref)
            # If the API server already has this state, an apply does not change the resource version.
            done.changed |= live is None or _version(answer) != _version(live)
            found = await writes.record_result(client, gateway.name, manifest, live, answer, seen.now)
            if found.contested:
                logger.warning("%s", found.contested)
    for held in filter(None, (plan.newer_checkpoints, plan.newer_aggregate)):
        done.refused += await _write_held_checkpoints(client, held, logger)
    for ref in plan.objects_to_delete:
        superfluous = seen.children[ref]
        assert superfluous is not None
        with one(ref, "delete", "deleted"):
            # Only the observed version: an object that changed since is observed again first.
            head = superfluous["metadata"]
            await client.delete(ref.kind, gateway.namespace, ref.name, head["uid"], head["resourceVersion"])
            done.changed = True
    if plan.rescale_to is not None:
        with one(worker, "scale", f"scaled to {format_count(plan.rescale_to, 'worker')}:"):
            scaled = {"spec": {"replicas": plan.rescale_to}}
            await merge_patch(client, worker.kind, gateway.namespace, worker.name, scaled)
            done.changed = True
    if plan.stop_auditor:
        auditor = Ref("StatefulSet", names(gateway).auditor)
        with one(auditor, "scale", "stopped"):
            nobody = {"spec": {"replicas": 0}}
            await merge_patch(client, auditor.kind, gateway.namespace, auditor.name, nobody)
            done.changed = True
    for pod, annotations in plan.pod_annotations.items():
        with one(Ref("Pod", pod), "annotate", "updated the annotations of"):
            await annotate(client, "Pod", gateway.namespace, pod, annotations)
            done.changed = True
    return done


def _version(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("resourceVersion", ""))


async def _write_held_checkpoints(client: Client, held: Manifest, logger: Logger) -> list[str]:
    """Write the checkpoints that are newer than the held ones. Return the refused writes."""
    ref = ref_of(held)
    try:
        await apply(client, held)
    except ApiError as error:
        if error.status == 409:
            # Another client wrote it since it was observed; the next reconcile reads the newest version.
            return []
        if error.transient:
            raise
        return [_describe_refusal(ref, error)]
    metrics.WRITES.labels(ref.kind, "apply").inc()
    logger.debug("stored the newest checkpoints in %s", ref)
    return []
