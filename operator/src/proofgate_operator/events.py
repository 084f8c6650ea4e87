"""Events: a changed condition is announced once, where `kubectl describe` shows it."""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from proofgate_operator.api import API_VERSION, KIND
from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import OPERATOR, Manifest
from proofgate_operator.plan.audit_reports import Finding
from proofgate_operator.plan.auditor_status import EVIDENCE_REASONS
from proofgate_operator.plan.retention_status import ALWAYS_REPORTED_REASONS

#: Condition types that are announced. The others follow from these or change too often.
_REPORTED_CONDITIONS = (
    ConditionType.READY,
    ConditionType.CONFIG_VALID,
    ConditionType.RESOLVED_REFS,
    ConditionType.SCALING_SAFE,
    ConditionType.AUDITED,
    ConditionType.KEPT,
)
#: The reason of Events about findings.
FINDING_EVENT_REASON = "AuditFinding"
#: Reasons that are announced whatever the previous reason was.
_ALWAYS_REPORTED_REASONS = (
    "ScaleDownForced",
    "RolloutStalled",
    "LedgerForked",
    "LedgerSetBack",
    *EVIDENCE_REASONS,
    *ALWAYS_REPORTED_REASONS,
)


def reportable_transitions(
    previous: Iterable[Mapping[str, Any]], current: Iterable[Condition]
) -> list[Condition]:
    """Return the conditions whose status changed and that are worth an Event. A first good status is not
    announced."""
    before = {condition["type"]: condition for condition in previous}

    def is_news(condition: Condition) -> bool:
        old = before.get(condition.type)
        # Ready only repeats the reason of an unmet need, so it is announced when that reason changes.
        if condition.reason in _ALWAYS_REPORTED_REASONS and condition.type is not ConditionType.READY:
            return old is None or old.get("reason") != condition.reason
        unseen = ConditionStatus.TRUE if condition.is_true else None
        return (
            condition.type in _REPORTED_CONDITIONS and (old["status"] if old else unseen) != condition.status
        )

    return [condition for condition in current if is_news(condition)]


def condition_event(gateway: Gateway, condition: Condition, now: str, *, once: bool = False) -> Manifest:
    """Return the Event about a condition; `now` is an RFC 3339 time. With `once`, the Event's name is derived
    from its content, so it is created only once, even if it is reported repeatedly."""
    kind = "Normal" if condition.is_true else "Warning"
    message = f"{condition.type} is {condition.status}: {condition.message}"
    told = build_event(gateway.namespace, gateway.name, gateway.uid, kind, condition.reason, message, now)
    if not once:
        return told
    return _with_event_name(told, [gateway.generation, condition.type, condition.status, condition.reason])


def finding_event(gateway: Gateway, finding: Finding, now: str) -> Manifest:
    """Return the Event about one finding of the auditor. Its name is derived from the finding, so it is
    created only once."""
    message = f"{finding.code} ({finding.verdict}): {finding.origin}: {finding.message}"
    told = build_event(
        gateway.namespace, gateway.name, gateway.uid, "Warning", FINDING_EVENT_REASON, message, now
    )
    return _with_event_name(told, [finding.code, finding.origin, finding.since])


def _with_event_name(told: Manifest, identity: list[Any]) -> Manifest:
    """Return an Event with a name derived from what it is about."""
    about = told["involvedObject"]
    whole = hashlib.sha256(json.dumps([about["uid"], *identity]).encode()).hexdigest()
    return {**told, "metadata": {**told["metadata"], "name": f"{about['name']}.{whole[:16]}"}}


def build_event(
    namespace: str, name: str, uid: str, kind: str, reason: str, message: str, now: str
) -> Manifest:
    """Return an Event about a gateway; `kind` is Normal or Warning, `now` an RFC 3339 time."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{name}.{uuid.uuid4().hex[:16]}",
            "namespace": namespace,
        },
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": name,
            "namespace": namespace,
            "uid": uid,
        },
        "type": kind,
        "reason": reason,
        "message": message[:1024],
        "source": {"component": OPERATOR},
        "reportingComponent": OPERATOR,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
