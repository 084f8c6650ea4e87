"""Whether a tenant that is an object of its own may attach to a gateway, and what its status says."""

from collections.abc import Sequence, Set
from enum import StrEnum
from typing import Any

from proofgate_operator.api.access import NamespacesFrom
from proofgate_operator.api.conditions import Condition, ConditionStatus, merge
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.tenant import GatewayTenant
from proofgate_operator.build.haproxy_config import MAX_ROUTED_TENANT
from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.plan.api_keys import KeyFault
from proofgate_operator.plan.problems import Problem

#: Digits of a key's digest that its owner is told: as many as stand in records.
_SHOWN_DIGITS = 8


class TenantConditionType(StrEnum):
    """Every condition that a tenant carries."""

    READY = "Ready"
    ACCEPTED = "Accepted"
    KEYS_VALID = "KeysValid"
    PROGRAMMED = "Programmed"


def selector_of(gateway: Gateway) -> str | None:
    """Return the label selector of the namespaces that may attach; None where labels do not decide."""
    allowed = gateway.spec.allowed_tenants
    if allowed is None or allowed.namespaces.from_ is not NamespacesFrom.SELECTOR:
        return None
    selector = allowed.namespaces.selector
    labels = (selector.match_labels if selector else None) or {}
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def refusal(gateway: Gateway, tenant: GatewayTenant, selected: Set[str] | None) -> Problem | None:
    """Return why a tenant may not attach; None if it may.

    `selected` are the namespaces whose labels the gateway's selector selects; None where they cannot be read.
    """
    allowed = gateway.spec.allowed_tenants
    named = f"GovernanceGateway {gateway.namespace}/{gateway.name}"
    if allowed is None:
        return Problem("NotAllowed", f"{named} has no spec.allowedTenants: it lets no GatewayTenant attach")
    match allowed.namespaces.from_:
        case NamespacesFrom.SAME:
            lets_in = tenant.namespace == gateway.namespace
        case NamespacesFrom.ALL:
            lets_in = True
        case NamespacesFrom.SELECTOR:
            if selected is None:
                message = (
                    f"{named} selects namespaces by their labels, which this operator may not read: it serves"
                    " single namespaces. Use from: Same or All there"
                )
                return Problem("NotAllowed", message)
            lets_in = tenant.namespace in selected
    if not lets_in:
        return Problem("NotAllowed", f"{named} does not let namespace {tenant.namespace} attach tenants")
    if len(tenant.tenant) > MAX_ROUTED_TENANT:
        message = (
            f"{tenant.tenant} is longer than {MAX_ROUTED_TENANT} characters: HAProxy could not tell a worker"
            " whole whom it routes for. Give the tenant a shorter name"
        )
        return Problem("NameTooLong", message)
    if tenant.spec.plan not in {plan.name for plan in gateway.spec.plans}:
        plans = ", ".join(sorted(plan.name for plan in gateway.spec.plans)) or "none"
        return Problem("PlanUnknown", f"{named} has no plan {tenant.spec.plan}; its plans: {plans}")
    return None


def _condition(kind: TenantConditionType, holds: bool, reason: str, message: str) -> Condition:
    return Condition(kind, ConditionStatus.TRUE if holds else ConditionStatus.FALSE, reason, message)


def _keys_valid(keys: Sequence[KeyDigest], faults: Sequence[KeyFault], refused: Problem | None) -> Condition:
    kind = TenantConditionType.KEYS_VALID
    if refused is not None:
        return Condition(kind, ConditionStatus.UNKNOWN, "NotAccepted", "keys are read once it is accepted")
    if faults:
        return _condition(kind, False, faults[0].reason, "; ".join(fault.message for fault in faults))
    message = f"{len(keys)} {'key is' if len(keys) == 1 else 'keys are'} let in"
    return _condition(kind, True, "Valid", message)


def _ready(needs: Sequence[Condition]) -> Condition:
    """Return the summary: the first need that is not met is its reason."""
    unmet = next((need for need in needs if not need.holds), None)
    if unmet is None:
        return _condition(TenantConditionType.READY, True, "Ready", "the tenant is as its spec says")
    return _condition(TenantConditionType.READY, False, unmet.reason, unmet.message)


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

    `refused` is why it was not accepted, `keys` are those that are let in, `faults` what is wrong with the
    others, `unwritten` why nothing of it is where workers and HAProxy read; `before` is its status until now.
    """
    accepted = (
        _condition(TenantConditionType.ACCEPTED, True, "Accepted", f"it has plan {tenant.spec.plan}")
        if refused is None
        else _condition(TenantConditionType.ACCEPTED, False, refused.reason, refused.message)
    )
    if refused is not None:
        programmed = _condition(
            TenantConditionType.PROGRAMMED, False, "NotAccepted", "no key of it is let in"
        )
    elif unwritten is not None:
        programmed = _condition(TenantConditionType.PROGRAMMED, False, unwritten.reason, unwritten.message)
    else:
        programmed = _condition(
            TenantConditionType.PROGRAMMED, True, "Programmed", "its keys are where workers and HAProxy read"
        )
    needs = (accepted, _keys_valid(keys, faults, refused), programmed)
    conditions = (_ready(needs), *needs)
    status: dict[str, Any] = {
        "observedGeneration": tenant.generation,
        "tenant": tenant.tenant,
        "keyCount": len(keys),
        "conditions": merge(before.get("conditions") or [], conditions, tenant.generation, now),
    }
    if keys:
        told = sorted(keys, key=lambda key: key.name)
        status["keys"] = [
            {"name": key.name, "digest": key.digest[:_SHOWN_DIGITS]}
            | ({"notAfter": key.expires} if key.expires else {})
            for key in told
        ]
    return status
