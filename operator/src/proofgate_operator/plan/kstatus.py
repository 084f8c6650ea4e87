"""Two conditions by which tools that know nothing of gateways tell work that goes on from work that stopped.

Source: kstatus (sigs.k8s.io/cli-utils, "The Reconciling and Stalled conditions"): they are True or absent.
"""

from collections.abc import Iterable

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.plan.unreadable_resources import CACHED_DATA_IN_USE_REASONS

#: Reasons of Progressing without which somebody's help nothing moves on.
_STUCK_REASONS = frozenset({"RolloutStalled", "ApplyFailed", "NameTaken"})
#: Reasons of what a tenant needs that comes without anybody's help.
_SELF_RESOLVING_REASONS = frozenset({"Pending", *CACHED_DATA_IN_USE_REASONS})


def kstatus_condition(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the condition that says that work goes on, or the one that says that it needs somebody."""
    by_type = {condition.type: condition for condition in conditions}
    progressing, valid = by_type[ConditionType.PROGRESSING], by_type[ConditionType.CONFIG_VALID]
    if progressing.reason in _STUCK_REASONS:
        return (_condition(ConditionType.STALLED, progressing),)
    if valid.status is ConditionStatus.FALSE:
        return (_condition(ConditionType.STALLED, valid),)
    if progressing.is_true:
        return (_condition(ConditionType.RECONCILING, progressing),)
    return ()


def tenant_kstatus_condition(needs: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the same of a tenant, by what it needs: what is not written yet, or cannot be looked at just
    now, comes by itself; what a gateway that is paused waits for is neither."""
    for need in needs:
        if need.reason in _SELF_RESOLVING_REASONS:
            return (_condition(ConditionType.RECONCILING, need),)
        if need.status is ConditionStatus.FALSE:
            return () if need.reason == "Paused" else (_condition(ConditionType.STALLED, need),)
    return ()


def _condition(kind: ConditionType, cause: Condition) -> Condition:
    return Condition(kind, ConditionStatus.TRUE, cause.reason, cause.message)
