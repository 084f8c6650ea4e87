"""Decides whether a GatewayTenant may attach to a gateway, and builds its status."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from proofgate_operator.api.access import NamespacesFrom, Plan
from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType, merge_conditions
from proofgate_operator.api.fields import LabelSelector
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.tenant import GatewayTenant
from proofgate_operator.build.haproxy_config import MAX_ROUTED_TENANT
from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.plan.api_keys import KeyFault
from proofgate_operator.plan.kstatus import tenant_kstatus_condition
from proofgate_operator.plan.problems import Problem
from proofgate_operator.plan.rfc3339 import seconds_of
from proofgate_operator.plan.unreadable_resources import CACHED_DATA_IN_USE_REASONS

#: Digits of a key's digest in the tenant's status: as many as in records.
_DISPLAYED_DIGITS = 8


class TenantConditionType(StrEnum):
    """All conditions of a tenant; the last two are only present while they are True."""

    READY = "Ready"
    ACCEPTED = "Accepted"
    KEYS_VALID = "KeysValid"
    PROGRAMMED = "Programmed"
    RECONCILING = ConditionType.RECONCILING.value
    STALLED = ConditionType.STALLED.value


#: Namespace and name of a tenant.
NamespacedName = tuple[str, str]


@dataclass(frozen=True)
class Admission:
    """Admission data besides the specs of the gateway and its tenants. `selected_namespaces`: the namespaces
    that each label selector selects; None if their labels cannot be read. `over_share`: the tenants beyond
    the number that their plan allows per namespace."""

    selected_namespaces: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    over_share: frozenset[NamespacedName] = frozenset()


def namespace_selectors(gateway: Gateway) -> frozenset[str]:
    """Return the label selectors of namespaces that decide who may attach and which plans a tenant may
    have."""
    allowed = gateway.spec.allowed_tenants
    if allowed is None:
        return frozenset()
    plans = (plan.allowed_namespaces for plan in gateway.spec.plans)
    found = [_text(wanted.selector) for wanted in plans if wanted is not None and wanted.selector]
    if allowed.namespaces.from_ is NamespacesFrom.SELECTOR:
        found.append(_text(allowed.namespaces.selector))
    return frozenset(found)


def _text(selector: LabelSelector | None) -> str:
    labels = (selector.match_labels if selector else None) or {}
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def previously_selected_namespaces(gateway: Gateway, plans: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the namespaces that each label selector had selected for tenants admitted earlier. `plans` are
    the plans of these tenants by `<namespace>/<name>`. A selector that admitted no tenant has no entry."""
    allowed = gateway.spec.allowed_tenants
    asked = {plan.name: plan.allowed_namespaces for plan in gateway.spec.plans}
    found: dict[str, set[str]] = {}
    for tenant, plan in plans.items():
        namespace, wanted = tenant.partition("/")[0], asked.get(plan)
        if allowed is not None and allowed.namespaces.from_ is NamespacesFrom.SELECTOR:
            found.setdefault(_text(allowed.namespaces.selector), set()).add(namespace)
        # A namespace that is admitted by name may have other labels.
        if wanted is not None and wanted.selector and namespace not in (wanted.names or ()):
            found.setdefault(_text(wanted.selector), set()).add(namespace)
    return {selector: frozenset(namespaces) for selector, namespaces in found.items()}


def tenant_limits_per_namespace(gateway: Gateway) -> dict[str, int]:
    """Return the number of tenants per namespace that each plan with such a limit allows."""
    shared = ((plan.name, plan.per_namespace) for plan in gateway.spec.plans)
    return {name: share.tenants for name, share in shared if share is not None and share.tenants is not None}


def tenants_over_share(
    gateway: Gateway, admission: Admission, tenants: Iterable[GatewayTenant]
) -> frozenset[NamespacedName]:
    """Return the tenants that exceed their plan's limit of tenants per namespace; older tenants come first.
    `tenants` has all tenants of the affected namespaces. A tenant that may not have the plan does not
    count."""
    shares = tenant_limits_per_namespace(gateway)
    sharing: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for tenant in tenants:
        if tenant.spec.plan in shares and attachment_refusal(gateway, tenant, admission) is None:
            same = sharing.setdefault((tenant.namespace, tenant.spec.plan), [])
            same.append((tenant.created, tenant.name))
    return frozenset(
        (namespace, name)
        for (namespace, plan), same in sharing.items()
        for _, name in sorted(same)[shares[plan] :]
    )


def attachment_refusal(gateway: Gateway, tenant: GatewayTenant, admission: Admission) -> Problem | None:
    """Return why a tenant may not attach; None if it may."""
    return named_attachment_refusal(gateway, (tenant.namespace, tenant.name), tenant.spec.plan, admission)


def named_attachment_refusal(
    gateway: Gateway, name: NamespacedName, wanted: str, admission: Admission
) -> Problem | None:
    """Return why a tenant with this namespace and name may not attach with the plan `wanted`; None if it
    may."""
    namespace, full = name[0], "/".join(name)
    allowed = gateway.spec.allowed_tenants
    named = f"GovernanceGateway {gateway.namespace}/{gateway.name}"
    if allowed is None:
        return Problem("NotAllowed", f"{named} has no spec.allowedTenants, so no GatewayTenant can attach")
    match allowed.namespaces.from_:
        case NamespacesFrom.SAME:
            lets_in = namespace == gateway.namespace
        case NamespacesFrom.ALL:
            lets_in = True
        case NamespacesFrom.SELECTOR:
            selected = admission.selected_namespaces.get(_text(allowed.namespaces.selector))
            if selected is None:
                message = (
                    f"{named} selects namespaces by their labels, which this operator may not read, "
                    "because it does not serve the whole cluster: set from to Same or All in the gateway"
                )
                return Problem("NotAllowed", message)
            lets_in = namespace in selected
    if not lets_in:
        return Problem("NotAllowed", f"{named} does not let namespace {namespace} attach tenants")
    if len(full) > MAX_ROUTED_TENANT:
        message = (
            f"{full} is longer than {MAX_ROUTED_TENANT} characters: HAProxy could not pass"
            " it to a worker in full. Give the tenant a shorter name"
        )
        return Problem("NameTooLong", message)
    plan = next((plan for plan in gateway.spec.plans if plan.name == wanted), None)
    if plan is None:
        plans = ", ".join(sorted(plan.name for plan in gateway.spec.plans)) or "none"
        return Problem("PlanUnknown", f"{named} has no plan {wanted}; its plans: {plans}")
    return _plan_refusal(named, plan, name, admission)


def _plan_refusal(named: str, plan: Plan, name: NamespacedName, admission: Admission) -> Problem | None:
    """Return why a tenant of an admitted namespace may not have a plan; None if it may."""
    namespace = name[0]
    where, wanted = f"spec.plans[{plan.name}]", plan.allowed_namespaces
    if wanted is not None and namespace not in (wanted.names or ()):
        selected = (
            admission.selected_namespaces.get(_text(wanted.selector)) if wanted.selector else frozenset()
        )
        if selected is None:
            message = (
                f"{where}.allowedNamespaces of {named} selects namespaces by their labels, which "
                "this operator may not read, because it does not serve the whole cluster: list the names of "
                "the namespaces in the gateway"
            )
            return Problem("PlanNotAllowed", message)
        if namespace not in selected:
            message = f"{where}.allowedNamespaces of {named} does not include namespace {namespace}"
            return Problem("PlanNotAllowed", message)
    if plan.per_namespace is not None and name in admission.over_share:
        message = (
            f"{where}.perNamespace.tenants of {named} is {plan.per_namespace.tenants}, and that many "
            f"older GatewayTenants of namespace {namespace} already have the plan"
        )
        return Problem("PlanShareTaken", message)
    return None


def _condition(kind: TenantConditionType, holds: bool, reason: str, message: str) -> Condition:
    return Condition(kind, ConditionStatus.TRUE if holds else ConditionStatus.FALSE, reason, message)


def _keys_valid(
    keys: Sequence[KeyDigest], faults: Sequence[KeyFault], refused: Problem | None, now: float
) -> Condition:
    kind = TenantConditionType.KEYS_VALID
    if refused is not None:
        return Condition(
            kind, ConditionStatus.UNKNOWN, "NotAccepted", "keys are read after the tenant is accepted"
        )
    for fault in faults:
        if fault.reason in CACHED_DATA_IN_USE_REASONS:
            told = "; ".join(item.message for item in faults)
            return Condition(kind, ConditionStatus.UNKNOWN, fault.reason, told)
    if faults:
        return _condition(kind, False, faults[0].reason, "; ".join(fault.message for fault in faults))
    if keys and all(key.expires_at <= now for key in keys):
        last = max(keys, key=lambda key: key.expires_at)
        message = f"every key has expired, the last key ({last.name}) at {last.not_after}: add a key"
        return _condition(kind, False, "KeysExpired", message)
    message = f"{len(keys)} {'key is' if len(keys) == 1 else 'keys are'} accepted"
    return _condition(kind, True, "Valid", message)


def _ready(needs: Sequence[Condition]) -> Condition:
    """Return the summary condition: its reason is the first unmet need."""
    unmet = [need for need in needs if not need.is_true]
    if not unmet:
        return _condition(TenantConditionType.READY, True, "Ready", "the tenant matches its spec")
    # Known faults come before resources that cannot be read.
    first = min(unmet, key=lambda need: need.status is ConditionStatus.UNKNOWN)
    return Condition(TenantConditionType.READY, first.status, first.reason, first.message)


def tenant_status(
    tenant: GatewayTenant,
    refused: Problem | None,
    keys: Sequence[KeyDigest],
    faults: Sequence[KeyFault],
    unwritten: Problem | None,
    before: dict[str, Any],
    now: str,
) -> dict[str, Any]:
    """Return the status of a tenant.

    `refused` is the reason for its refusal, `keys` are the accepted keys, `faults` the faults of the others.
    `unwritten` is why its keys are not in the shards that workers and HAProxy read. `before` is its current
    status.
    """
    accepted = (
        _condition(TenantConditionType.ACCEPTED, True, "Accepted", f"the tenant has plan {tenant.spec.plan}")
        if refused is None
        else _condition(TenantConditionType.ACCEPTED, False, refused.reason, refused.message)
    )
    if refused is not None:
        programmed = _condition(
            TenantConditionType.PROGRAMMED, False, "NotAccepted", "none of the tenant's keys is accepted"
        )
    elif unwritten is not None:
        programmed = _condition(TenantConditionType.PROGRAMMED, False, unwritten.reason, unwritten.message)
    else:
        programmed = _condition(
            TenantConditionType.PROGRAMMED,
            True,
            "Programmed",
            "the tenant's keys are written for workers and HAProxy",
        )
    needs = (accepted, _keys_valid(keys, faults, refused, seconds_of(now) or 0.0), programmed)
    conditions = (_ready(needs), *needs, *tenant_kstatus_condition(needs))
    status: dict[str, Any] = {
        "observedGeneration": tenant.generation,
        "tenant": tenant.qualified_name,
        "keyCount": len(keys),
        "conditions": merge_conditions(before.get("conditions") or [], conditions, tenant.generation, now),
    }
    if keys:
        told = sorted(keys, key=lambda key: key.name)
        status["keys"] = [
            {"name": key.name, "digest": key.digest[:_DISPLAYED_DIGITS]}
            | ({"notAfter": key.not_after} if key.not_after else {})
            for key in told
        ]
    return status
