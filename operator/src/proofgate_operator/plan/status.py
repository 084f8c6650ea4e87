"""Builds the status of a gateway: numbers, shards, the ledger's keys, faults and conditions."""

from dataclasses import dataclass, field

from proofgate_operator.api.conditions import Condition, ConditionType
from proofgate_operator.api.crd import MAX_FAULTS, MAX_FORMER_KEYS
from proofgate_operator.build import checkpoint, statefulset
from proofgate_operator.build.naming import Defaults, Manifest, names, selector_labels
from proofgate_operator.build.services import endpoint
from proofgate_operator.plan.auditor_status import auditor_status
from proofgate_operator.plan.conditions import conditions, status_count
from proofgate_operator.plan.pods import pod_trouble
from proofgate_operator.plan.retention_status import keeping_status
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.shards import Shard, WorkerPhase
from proofgate_operator.plan.status_inputs import StatusInputs


@dataclass(frozen=True)
class Status:
    """A gateway's status, without its times."""

    replicas: int
    ready_replicas: int
    selector: str
    endpoint: str
    ledger: Manifest
    conditions: tuple[Condition, ...] = field(default=())
    updated_replicas: int = 0
    shards: tuple[Manifest, ...] = ()
    faults: tuple[Manifest, ...] = ()
    auditor: Manifest = field(default_factory=dict)
    keeping: Manifest = field(default_factory=dict)

    def condition(self, kind: ConditionType) -> Condition:
        """Return one condition."""
        return next(condition for condition in self.conditions if condition.type is kind)


def gateway_status(situation: StatusInputs, defaults: Defaults) -> Status:
    """Return the status of a gateway."""
    gateway, seen = situation.gateway, situation.seen
    own = names(gateway)
    workers = seen.child("StatefulSet", own.worker)
    balancer = seen.child("Deployment", own.haproxy)
    labels = selector_labels(gateway, statefulset.COMPONENT)
    return Status(
        replicas=status_count(workers, "replicas"),
        ready_replicas=status_count(workers, "readyReplicas"),
        selector=",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        endpoint=endpoint(gateway, defaults.cluster_domain),
        ledger=_ledger(situation),
        conditions=conditions(situation, workers, balancer),
        updated_replicas=status_count(workers, "updatedReplicas"),
        shards=_shards(situation, workers),
        auditor=auditor_status(situation),
        keeping=keeping_status(situation),
        faults=tuple(
            {"field": fault.field, "reason": fault.reason, "message": fault.message[:1024]}
            for fault in situation.configuration.faults[:MAX_FAULTS]
        ),
    )


def _ledger(situation: StatusInputs) -> Manifest:
    """Return `.status.ledger`. Keys that signed evidence are never removed."""
    before = situation.seen.ledger_status
    current = situation.configuration.verifying_key or before.get("verifyingKey")
    known = [*before.get("formerVerifyingKeys", ()), *filter(None, [before.get("verifyingKey")])]
    former = [key for key in dict.fromkeys(known) if key != current][-MAX_FORMER_KEYS:]
    found: Manifest = {"verifyingKey": current} if current else {}
    if former:
        found["formerVerifyingKeys"] = former
    signing = _signing(situation, [*filter(None, [current]), *reversed(former)])
    return {**found, "signing": signing} if signing else found


def _signing(situation: StatusInputs, known: list[str]) -> list[Manifest]:
    """Return which shards sign with which of the known keys, according to their newest checkpoints.

    A worker that currently reports no checkpoint keeps its entry; a worker that no longer exists loses it.
    """
    before = {
        shard: item.get("verifyingKey")
        for item in situation.seen.ledger_status.get("signing", ())
        for shard in item.get("shards", ())
    }
    keys = [*known, *dict.fromkeys(key for key in situation.configuration.former_keys if key not in known)]
    signing: dict[str, list[int]] = {key: [] for key in keys}
    for shard in situation.shards:
        note = shard.report.checkpoint if shard.report else ""
        key = checkpoint.signer(note, keys) if note else before.get(shard.ordinal)
        if key in signing:
            signing[key].append(shard.ordinal)
    items = [{"verifyingKey": key, "shards": sorted(shards)} for key, shards in signing.items() if shards]
    return items[: MAX_FORMER_KEYS + 1]


def _shards(situation: StatusInputs, workers: Manifest | None) -> tuple[Manifest, ...]:
    """Return `.status.shards`: every worker that should exist or still exists."""
    asked = int(workers["spec"]["replicas"]) if workers else 0
    before = {item.get("ordinal"): item for item in situation.seen.previous_shards}
    by_number = {shard.ordinal: shard for shard in situation.shards}
    items: list[Manifest] = []
    for number in sorted({*range(asked), *by_number}):
        shard = by_number.get(number)
        item: Manifest = {
            "ordinal": number,
            "phase": (shard.phase(asked) if shard else WorkerPhase.PENDING).value,
        }
        if shard is not None:
            item |= _shard(situation, shard, before.get(number) or {})
        items.append(item)
    return tuple(items)


def _shard(situation: StatusInputs, shard: Shard, before: Manifest) -> Manifest:
    movement, item = situation.scaling_step, Manifest()
    if movement.shard_to_retire is not None and movement.shard_to_retire.ordinal == shard.ordinal:
        assert movement.since is not None
        item = {"phase": WorkerPhase.RETIRING.value, "retiringSince": time_of(movement.since)}
    elif situation.gateway.spec.paused and shard.retiring_since is not None:
        item["retiringSince"] = time_of(shard.retiring_since)
    elif shard.ready and shard.retiring:
        item["phase"] = WorkerPhase.READY.value
    # A worker that could not be asked keeps its last values.
    told = shard.report.config_digest if shard.report else ""
    digest = told or before.get("configDigest")
    if digest:
        item["configDigest"] = digest
    trouble = pod_trouble(shard.pod)
    if item.get("phase") != WorkerPhase.RETIRING.value and trouble and not shard.terminating:
        item["message"] = trouble[:1024]
    if movement.note and movement.shard_to_retire is shard:
        item["message"] = movement.note[:1024]
    return item
