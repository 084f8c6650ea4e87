"""Restricts the plan of a gateway while a Secret that affects more than keys cannot be read.

Running pods continue unchanged: on an incomplete observation, nothing is created, moved or deleted; at most a
worker's retirement is cancelled. Only the keys of tenants are written, because a removed key must be revoked
without delay.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from proofgate_operator.api.conditions import ABNORMAL_CONDITIONS, Condition, ConditionStatus, ConditionType
from proofgate_operator.api.crd import MAX_FAULTS
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import names
from proofgate_operator.plan.decide import ReconcilePlan
from proofgate_operator.plan.observed_state import ObservedState, Ref, non_tenant_secrets, ref_of
from proofgate_operator.plan.shred_keys import NO_SHRED_KEYS
from proofgate_operator.plan.unreadable_resources import CACHED_DATA_IN_USE_REASONS

_COMMON_CONDITIONS = {*ConditionType} - ABNORMAL_CONDITIONS
#: Conditions that only some gateways have.
_OPTIONAL_CONDITIONS = {*ABNORMAL_CONDITIONS, ConditionType.AUDITED, ConditionType.KEPT}


def restrict_to_keys(gateway: Gateway, seen: ObservedState, plan: ReconcilePlan) -> ReconcilePlan:
    """Return the plan; if only keys can be decided, return only the part of the plan that concerns keys."""
    blind = [
        (name, seen.unreadable_secrets[name])
        for name in non_tenant_secrets(gateway)
        if name in seen.unreadable_secrets
    ]
    if not blind:
        return plan
    own = names(gateway)
    kept = (Ref("Secret", own.tenants), Ref("ConfigMap", own.addresses))
    told = [fault for fault in plan.status.faults if fault["reason"] in CACHED_DATA_IN_USE_REASONS]
    messages = [f"Secret {name}: {found.message}" for name, found in blind]
    listed = [
        {"field": "spec", "reason": str(found.reason), "message": message[:1024]}
        for (_, found), message in zip(blind, messages, strict=True)
    ]
    status = replace(
        plan.status,
        conditions=retain_conditions(seen.previous_conditions, blind[0][1].reason, messages),
        faults=(*listed, *told)[:MAX_FAULTS],
        auditor=dict(seen.auditor_status),
        keeping=dict(seen.keeping_status),
    )
    return replace(
        plan,
        secrets_to_generate=(),
        manifests_to_apply=tuple(
            manifest for manifest in plan.manifests_to_apply if ref_of(manifest) in kept
        ),
        objects_to_delete=(),
        status=status,
        rescale_to=None,
        stop_auditor=False,
        merge_patches={},
        prune_label_patches={},
        pods_to_retire=(),
        pods_to_replace=(),
        time_driven=False,
        newer_checkpoints=None,
        newer_aggregate=None,
        shred_keys=NO_SHRED_KEYS,
        certificate_renewal=None,
    )


def retain_conditions(
    previous: Iterable[Mapping[str, Any]], reason: str, messages: Iterable[str]
) -> tuple[Condition, ...]:
    """Return the previous conditions, except ResolvedRefs, which reports the failed reads. Without previous
    conditions, each is Unknown."""
    told = "; ".join(dict.fromkeys(messages))
    blind = Condition(ConditionType.RESOLVED_REFS, ConditionStatus.UNKNOWN, reason, told)
    known = {
        found["type"]: Condition(
            ConditionType(found["type"]), ConditionStatus(found["status"]), found["reason"], found["message"]
        )
        for found in previous
        if found["type"] in _COMMON_CONDITIONS
    }
    if ConditionType.RESOLVED_REFS not in known:
        return tuple(replace(blind, type=kind) for kind in ConditionType if kind not in _OPTIONAL_CONDITIONS)
    return tuple({**known, ConditionType.RESOLVED_REFS: blind}.values())
