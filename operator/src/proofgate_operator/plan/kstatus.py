"""Two conditions by which generic tools distinguish work in progress from stalled work.

Source: kstatus (sigs.k8s.io/cli-utils, "The Reconciling and Stalled conditions"): each is True or absent.
"""

from collections.abc import Iterable

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.plan.unreadable_resources import CACHED_DATA_IN_USE_REASONS

#: Reasons of Progressing that need somebody's help.
_STUCK_REASONS = frozenset({"RolloutStalled", "ApplyFailed", "NameTaken"})
#: Reasons of a tenant's unmet needs that resolve without help.
_SELF_RESOLVING_REASONS = frozenset({"Pending", *CACHED_DATA_IN_USE_REASONS})


def kstatus_condition(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the condition Reconciling or Stalled of a gateway; none if neither applies."""
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
    """Return the condition of a tenant, by its needs. Pending writes and unreadable resources count as work
    in progress; waiting for a paused gateway counts as neither."""
    for need in needs:
        if need.reason in _SELF_RESOLVING_REASONS:
            return (_condition(ConditionType.RECONCILING, need),)
        if need.status is ConditionStatus.FALSE:
            return () if need.reason == "Paused" else (_condition(ConditionType.STALLED, need),)
    return ()


def _condition(kind: ConditionType, cause: Condition) -> Condition:
    return Condition(kind, ConditionStatus.TRUE, cause.reason, cause.message)
