"""The conditions of a gateway, with reasons on which a reader can act."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from proofgate_schema.counts import format_count

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.api.gateway import FORCE_SCALE_DOWN_ANNOTATION
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.plan.auditor_status import audited_condition
from proofgate_operator.plan.budgets import budgets_note
from proofgate_operator.plan.pinning import cpu_pinned_condition
from proofgate_operator.plan.pods import pod_trouble
from proofgate_operator.plan.request_probes import request_probe_failure, request_probe_note
from proofgate_operator.plan.retention_status import kept_condition
from proofgate_operator.plan.scaling import RemovalReason
from proofgate_operator.plan.serving import serving_problem
from proofgate_operator.plan.status_inputs import StatusInputs
from proofgate_operator.plan.unreadable_resources import CACHED_DATA_IN_USE_REASONS
from proofgate_operator.plan.volume_capacity import capacity_note, capacity_problem
from proofgate_operator.plan.volumes import limits_note, storage_bound_condition

#: The conditions that Ready summarizes, in the order in which their reasons are reported.
_READY_NEEDS = (
    ConditionType.CONFIG_VALID,
    ConditionType.STORAGE_BOUND,
    ConditionType.WORKERS_AVAILABLE,
    ConditionType.LOAD_BALANCER_AVAILABLE,
)

#: Reason and message of Progressing while a fault of the spec stops all progress.
_BLOCKED_BY_SPEC = (
    "ConfigInvalid",
    "fix the problems that ConfigValid lists; all other changes are applied",
)
#: Reason of Progressing while a rollout is stalled.
ROLLOUT_STALLED = "RolloutStalled"

#: Reasons of StorageBound while the log that a worker reports contradicts, or is behind, the held checkpoint.
LEDGER_FORKED = "LedgerForked"
LEDGER_ROLLED_BACK = "LedgerSetBack"


def _condition(kind: ConditionType, holds: bool | None, reason: str, message: str) -> Condition:
    status = {
        True: ConditionStatus.TRUE,
        False: ConditionStatus.FALSE,
        None: ConditionStatus.UNKNOWN,
    }[holds]
    return Condition(kind, status, reason, message)


def status_count(live: Manifest | None, field_name: str) -> int:
    """Return a number from the status of a StatefulSet or Deployment; 0 if it is missing."""
    return int(((live or {}).get("status") or {}).get(field_name) or 0)


def _sentences(parts: Iterable[str], limit: int = 5) -> str:
    """Join at most `limit` sentences, and append how many were left out."""
    found = list(parts)
    text = "; ".join(found[:limit])
    return text if len(found) <= limit else f"{text}; and {len(found) - limit} more"


def _config_valid(situation: StatusInputs) -> Condition:
    kind = ConditionType.CONFIG_VALID
    if situation.conflicts:
        taken = _sentences(str(ref) for ref in situation.conflicts)
        return _condition(
            kind,
            False,
            "NameTaken",
            f"{taken}: exists and does not belong to this gateway; rename the gateway or delete the object",
        )
    problems = situation.configuration.problems
    told = [problem.message for problem in problems]
    if situation.configuration.blocking_problems:
        running = situation.seen.child("StatefulSet", names(situation.gateway).worker) is not None
        kept = " (the workers keep the last valid configuration)" if running else ""
        return _condition(kind, False, problems[0].reason, _sentences(told) + kept)
    refusals = [
        f"{shard.name} keeps the previous configuration: {shard.report.refusal_reason}"
        for shard in situation.shards
        # The rollout applies the fields that only a new worker reads.
        if shard.report
        and shard.report.refusal_reason
        and not (shard.report.needs_restart and shard.outdated)
    ]
    if refusals:
        return _condition(kind, False, "RefusedByWorker", _sentences([_sentences(refusals, limit=2), *told]))
    if problems:
        return _condition(kind, False, problems[0].reason, _sentences(told))
    valid = "the spec is valid"
    notes = filter(None, [budgets_note(situation.gateway), limits_note(situation.gateway)])
    return _condition(kind, True, "Valid", _sentences((valid, *notes)))


def _resolved_refs(situation: StatusInputs) -> Condition:
    kind = ConditionType.RESOLVED_REFS
    # Unreadable resources come first: they may be the cause of the others.
    faults = sorted(
        situation.configuration.faults, key=lambda fault: fault.reason not in CACHED_DATA_IN_USE_REASONS
    )
    if faults and faults[0].reason in CACHED_DATA_IN_USE_REASONS:
        return _condition(kind, None, faults[0].reason, _sentences(fault.message for fault in faults))
    if not faults:
        return _condition(kind, True, "Resolved", "every Secret that the spec names can be used")
    return _condition(kind, False, faults[0].reason, _sentences(fault.message for fault in faults))


def unreadable_spec_message(faults: Iterable[str]) -> tuple[Condition, ...]:
    """Return the conditions for a spec that this operator cannot read, because the CRD of another version
    accepted it."""
    message = f"{_sentences(faults)} (nothing is changed)"
    return (
        _condition(ConditionType.READY, False, "SpecInvalid", message),
        _condition(ConditionType.CONFIG_VALID, False, "SpecInvalid", message),
        _condition(ConditionType.STALLED, True, "SpecInvalid", message),
    )


#: Reasons of claims that do not exist yet or are not bound: they will have the requested size.
_CLAIM_PENDING_REASONS = frozenset({"ClaimNotMade", "ClaimPending"})


def _storage_bound(situation: StatusInputs) -> Condition:
    held = situation.held_checkpoints
    if held.forks:
        message = f"{_sentences(held.forks)}: a copy of the volume is in use elsewhere, or the key has leaked"
        return _condition(ConditionType.STORAGE_BOUND, False, LEDGER_FORKED, message)
    if held.rollbacks:
        message = f"{_sentences(held.rollbacks)}: the volume was rolled back or replaced"
        return _condition(ConditionType.STORAGE_BOUND, False, LEDGER_ROLLED_BACK, message)
    found = storage_bound_condition(situation.gateway, situation.seen)
    small = capacity_problem(situation.gateway, situation.seen)
    if small and (found.is_true or found.reason in _CLAIM_PENDING_REASONS):
        return _condition(ConditionType.STORAGE_BOUND, False, small.reason, small.message)
    note = capacity_note(situation.gateway, situation.seen)
    return replace(found, message=_append_note(found.message, note)) if found.is_true else found


def _workers_available(situation: StatusInputs, live: Manifest | None) -> Condition:
    kind = ConditionType.WORKERS_AVAILABLE
    desired = situation.gateway.spec.replicas
    if live is None:
        return _condition(kind, False, "WorkersNotMade", "the workers' StatefulSet does not exist")
    ready = status_count(live, "readyReplicas")
    summary = _append_note(
        f"{min(ready, desired)} of {desired} workers ready", _strays(situation.seen.stray_pods)
    )
    if ready >= desired:
        return _condition(kind, True, "AllReady", summary)
    movement = situation.scaling_step
    if (
        movement.removal_reason is RemovalReason.ROLLING
        and not movement.stalled_reason
        and 1 < desired == ready + 1
    ):
        return _condition(kind, True, "OneIsReplaced", f"all but one of {desired} workers are ready")
    troubles = [situation.seen.creation_failure, *(pod_trouble(shard.pod) for shard in situation.shards)]
    trouble = _sentences(filter(None, troubles), limit=3)
    return _condition(kind, False, "WorkersMissing", f"{summary}: {trouble}" if trouble else summary)


def _strays(pods: tuple[str, ...]) -> str | None:
    if not pods:
        return None
    return f"these pods are ignored: they have the workers' labels, but are not workers: {_sentences(pods)}"


def _balancer_available(situation: StatusInputs, live: Manifest | None) -> Condition:
    kind = ConditionType.LOAD_BALANCER_AVAILABLE
    desired = situation.gateway.spec.load_balancer.replicas
    if live is None:
        return _condition(kind, False, "LoadBalancerNotMade", "HAProxy's Deployment does not exist")
    ready = status_count(live, "readyReplicas")
    summary = f"{min(ready, desired)} of {desired} HAProxy pods ready"
    silent = request_probe_failure(situation.seen.request_probes)
    if silent:
        return _condition(kind, False, silent.reason, f"{summary}; {silent.message}")
    summary = _append_note(summary, request_probe_note(situation.seen.request_probes))
    if ready >= desired:
        return _condition(kind, True, "AllReady", summary)
    trouble = _sentences(
        [*_pod_creation_failures(live), *filter(None, map(pod_trouble, situation.seen.haproxy_pods))], 3
    )
    message = f"{summary}: {trouble}" if trouble else summary
    return _condition(kind, ready > 0, "SomeReady" if ready else "LoadBalancerMissing", message)


def _pod_creation_failures(deployment: Manifest) -> Iterator[str]:
    """Yield why the API server refuses to create pods of a Deployment: a quota, an admission policy."""
    for item in (deployment.get("status") or {}).get("conditions") or []:
        if item.get("type") == "ReplicaFailure" and item.get("status") == "True":
            yield str(item.get("message", ""))


def _rolling(live: Manifest, desired: int) -> bool:
    """Return whether a controller still has to update pods of a StatefulSet or Deployment."""
    status = live.get("status") or {}
    return (
        status.get("observedGeneration", 0) < live["metadata"].get("generation", 0)
        or status_count(live, "replicas") != desired
        or status_count(live, "updatedReplicas") < desired
        or status_count(live, "readyReplicas") < desired
    )


def _progressing(situation: StatusInputs, workers: Manifest | None, balancer: Manifest | None) -> Condition:
    kind = ConditionType.PROGRESSING
    spec = situation.gateway.spec
    if spec.paused:
        return _condition(kind, False, "Paused", "spec.paused is true: nothing is changed")
    if situation.conflicts:
        return _condition(kind, False, "NameTaken", "nothing is changed while ConfigValid is False")
    if situation.leaving:
        left = _sentences(str(ref) for ref in situation.leaving)
        return _condition(
            kind,
            True,
            "WaitingForDeletion",
            f"{left}: is being deleted, and will be created again after that",
        )
    movement = situation.scaling_step
    if movement.stalled_reason:
        message = f"{movement.stalled_reason}; the workers that are ready continue unchanged"
        return _condition(kind, False, ROLLOUT_STALLED, message)
    if movement.removal_reason is RemovalReason.ROLLING:
        message = f"workers are replaced one by one; waiting for {movement.waiting_for}"
        return _condition(kind, True, "Rolling", _append_note(message, movement.note))
    if situation.contested:
        return _condition(kind, False, "Contested", _sentences(situation.contested))
    written = situation.has_writes and movement.removal_reason is None and not situation.workers_taking_over
    invalid = bool(situation.configuration.blocking_problems)
    if ((workers is None or balancer is None) and not invalid) or written:
        return _condition(kind, True, "Applying", "the gateway's objects are being written")
    if workers is None or balancer is None:
        return _condition(kind, False, *_BLOCKED_BY_SPEC)
    if movement.removal_reason is RemovalReason.SCALING_DOWN:
        asked = int(workers["spec"]["replicas"])
        message = f"scaling from {format_count(asked, 'worker')} to {spec.replicas}"
        return _condition(kind, True, "ScalingDown", message)
    if status_count(workers, "replicas") < spec.replicas:
        message = (
            f"scaling from {format_count(status_count(workers, 'replicas'), 'worker')} to {spec.replicas}"
        )
        return _condition(kind, True, "ScalingUp", message)
    if _rolling(workers, spec.replicas):
        return _condition(kind, True, "WorkersStarting", "workers are starting")
    if _rolling(balancer, spec.load_balancer.replicas):
        return _condition(kind, True, "LoadBalancerRolling", "HAProxy pods are starting or being replaced")
    if situation.workers_taking_over:
        name = names(situation.gateway).worker
        takers = _sentences(f"{name}-{number}" for number in situation.workers_taking_over)
        return _condition(kind, True, "TenantsMoving", f"tenants are moving to {takers}")
    if invalid:
        return _condition(kind, False, *_BLOCKED_BY_SPEC)
    return _condition(kind, False, "Settled", "the gateway matches its spec")


def _scaling_safe(situation: StatusInputs, workers: Manifest | None) -> Condition:
    kind = ConditionType.SCALING_SAFE
    movement = situation.scaling_step
    if movement.forced and movement.blocked_reason:
        message = (
            f"the scale-down is forced by {FORCE_SCALE_DOWN_ANNOTATION} although {movement.blocked_reason}"
        )
        return _condition(kind, False, "ScaleDownForced", message)
    if movement.blocked_reason:
        message = (
            f"scaling to {format_count(situation.gateway.spec.replicas, 'worker')} is blocked: "
            f"{movement.blocked_reason}"
        )
        return _condition(kind, False, "ScaleDownBlocked", message)
    if movement.removal_reason is RemovalReason.SCALING_DOWN:
        message = f"{movement.waiting_for} is being removed: this worker retires, drains and seals its log"
        return _condition(kind, True, "OneAtATime", _append_note(message, movement.note))
    return _condition(
        kind,
        True,
        "NothingLeaves",
        "no worker is being removed; every worker seals its log before its removal",
    )


def _append_note(message: str, note: str | None) -> str:
    return f"{message}; {note}" if note else message


def _available(situation: StatusInputs, workers: Manifest | None, balancer: Manifest | None) -> Condition:
    """Return whether any client is served, even if some parts are missing."""
    kind = ConditionType.AVAILABLE
    nobody = serving_problem(situation)
    if not status_count(workers, "readyReplicas"):
        return _condition(kind, False, "WorkersMissing", "no worker is ready")
    if not status_count(balancer, "readyReplicas"):
        return _condition(kind, False, "LoadBalancerMissing", "no HAProxy pod is ready")
    nobody = nobody or request_probe_failure(situation.seen.request_probes)
    if nobody:
        return _condition(kind, False, nobody.reason, nobody.message)
    return _condition(kind, True, "Serving", "requests are served")


def _ready(conditions: Iterable[Condition], situation: StatusInputs) -> Condition:
    """Return the summary condition: its reason is the first unmet need."""
    by_type = {condition.type: condition for condition in conditions}
    for kind in _READY_NEEDS:
        need = by_type[kind]
        if not need.is_true:
            return Condition(ConditionType.READY, need.status, need.reason, need.message)
    nobody = serving_problem(situation)
    if nobody:
        return _condition(ConditionType.READY, False, nobody.reason, nobody.message)
    return _condition(ConditionType.READY, True, "Ready", "the gateway serves requests")


def conditions(
    situation: StatusInputs, workers: Manifest | None, balancer: Manifest | None
) -> tuple[Condition, ...]:
    """Return all conditions, Ready first.

    `workers` is the live StatefulSet and `balancer` HAProxy's live Deployment; None if it does not exist.
    """
    found = (
        _available(situation, workers, balancer),
        _config_valid(situation),
        _resolved_refs(situation),
        _storage_bound(situation),
        _workers_available(situation, workers),
        _balancer_available(situation, balancer),
        _progressing(situation, workers, balancer),
        _scaling_safe(situation, workers),
        cpu_pinned_condition(situation.gateway.spec.worker.cpu, situation.shards),
        *audited_condition(situation),
        *kept_condition(situation),
    )
    return (_ready(found, situation), *found)
