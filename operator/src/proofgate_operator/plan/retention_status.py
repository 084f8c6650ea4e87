"""The results of the retention job: the condition Kept, and `.status.keeping`.

True: the last run did what the manifest says. False: something that had to be removed stays, or nothing may
be removed until a person checks. Unknown: the job has not run yet, or may not run now. The gateway serves
requests in any case.
"""

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.build import retention
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.plan import retention_runs
from proofgate_operator.plan.audit_key import RETENTION_FIELD
from proofgate_operator.plan.pods import pod_trouble
from proofgate_operator.plan.retention import known_hold_count, waits_for_auditor
from proofgate_operator.plan.retention_runs import RetentionRun
from proofgate_operator.plan.rfc3339 import seconds_of, time_of
from proofgate_operator.plan.status_inputs import StatusInputs

#: Reasons why a run was incomplete, by the code in its report; Failed for any other code.
FAILURE_REASONS = {
    "staying": "Overdue",
    "hold_changed": "HoldChanged",
    "keeping_state_missing": "StateLost",
    "keeping_state_set_back": "StateSetBack",
    "keeping_state_corrupt": "StateCorrupt",
    "clock_doubtful": "ClockDoubtful",
    "retention_key_differs": "KeyDiffers",
    "not_anchored": "NotAnchored",
    "auditor_unreachable": "AuditorUnreachable",
    "auditor_log_refused": "AuditorLogRefused",
}
#: Reasons that are announced whatever the previous reason was.
ALWAYS_REPORTED_REASONS = ("StateLost", "StateSetBack", "HoldChanged", "HeldOutsideManifest")
_OK = "ok"
#: Seconds within which a due run must have been created, and a waiting run must have started.
_MAX_DELAY_SECONDS = 6 * 3600


def _condition(holds: bool | None, reason: str, message: str) -> Condition:
    status = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}[holds]
    return Condition(ConditionType.KEPT, status, reason, message)


def kept_condition(situation: StatusInputs) -> tuple[Condition, ...]:
    """Return the condition Kept of a gateway with a retention job; empty without one."""
    gateway, wanted = situation.gateway, situation.gateway.spec.keeping
    if wanted is None:
        return ()
    if situation.retention_conflicts:
        taken = ", ".join(str(ref) for ref in situation.retention_conflicts)
        message = (
            f"{taken}: exists and does not belong to this gateway; rename the gateway or delete the object"
        )
        return (_condition(False, "NameTaken", message),)
    for fault in situation.configuration.faults:
        if fault.field == RETENTION_FIELD:
            return (_condition(False, fault.reason, fault.message),)
    reported = keeping_status(situation)
    result = reported.get("result")
    if result not in (None, _OK):
        message = f"{reported.get('message') or 'the run failed'}{_outdated_note(situation, reported)}"
        return (_condition(False, FAILURE_REASONS.get(result, "Failed"), message),)
    missing = _overdue_run(situation, reported)
    if missing:
        return (_condition(False, "NotReported", missing),)
    if wanted.suspend:
        message = "spec.keeping.suspend is true: nothing is removed or erased, and new holds are not applied"
        return (_condition(None, "Suspended", message),)
    if waits_for_auditor(gateway, situation.seen, situation.configuration):
        message = "the auditor does not have the retention key yet, and would report removals as losses"
        return (_condition(None, "WaitingForAuditor", message),)
    if result is None:
        return (
            _condition(
                None,
                "NeverRun",
                f"the retention job has not run yet; its schedule is {wanted.schedule}, in UTC",
            ),
        )
    outside = reported.get("holdsNotInManifest") or []
    if outside:
        count = reported.get("holdsNotInManifestCount", len(outside))
        since = _outdated_note(situation, reported)
        message = (
            f"active holds that are not in the manifest: {count} ({', '.join(outside)}). Release them with "
            f"`released` in the manifest, or by hand{since}"
        )
        return (_condition(True, "HeldOutsideManifest", message),)
    done = f"all expired data is removed; active holds: {reported['holds']}{_anchor(reported)}"
    return (_condition(True, "Kept", f"{done}{_outdated_note(situation, reported)}"),)


def _anchor(told: Manifest) -> str:
    """Return a note if only the retention job confirms the times that it signs; empty otherwise."""
    return (
        "; no independent witness confirms the times that the job signs, because there is no auditor"
        if told.get("anchor") == retention_runs.NO_ANCHOR
        else ""
    )


def _outdated_note(situation: StatusInputs, told: Manifest) -> str:
    """Return a note if the manifest has changed since the run; empty otherwise."""
    wanted = situation.gateway.spec.keeping
    same = wanted is None or told.get("plan") in (None, retention.digest(wanted))
    return "" if same else "; spec.keeping has changed since then: the next run applies the change"


def _overdue_run(situation: StatusInputs, told: Manifest) -> str | None:
    """Return which due run has not started or reported; None if there is none."""
    seen = situation.seen
    waiting = retention_runs.unfinished_pods(seen.retention_pods)
    for pod in waiting:
        made = seconds_of(pod["metadata"].get("creationTimestamp"))
        started = (pod.get("status") or {}).get("phase") == "Running"
        if not started and made is not None and seen.now - made > _MAX_DELAY_SECONDS:
            return f"a run of the retention job does not start: {pod_trouble(pod)}"
    job = seen.child("CronJob", names(situation.gateway).retention)
    due = seconds_of(((job or {}).get("status") or {}).get("lastScheduleTime"))
    last = seconds_of(told.get("lastRunTime")) or 0.0
    if waiting or due is None or due <= last or seen.now - due <= _MAX_DELAY_SECONDS:
        return None
    return f"the run that was due at {time_of(due)} has reported no result: check the Jobs of the CronJob"


def keeping_status(situation: StatusInputs) -> Manifest:
    """Return `.status.keeping`: values of the newest run; a value it did not report stays from an earlier
    run."""
    gateway, seen = situation.gateway, situation.seen
    key = situation.configuration.retention_key
    if gateway.spec.keeping is None:
        return {}
    found = dict(seen.keeping_status)
    if key is not None:
        if found.get("retentionKeyName") not in (None, key.name):
            found = {}
        found |= {"retentionKeyName": key.name, "verifyingKey": key.verifying_text}
        known = known_hold_count(gateway, seen, key)
        if known is not None:
            found["knownHolds"] = known
    for run in retention_runs.finished_runs(seen.retention_pods, found.get("retentionKeyName", "")):
        if run.started_at > (seconds_of(found.get("lastRunTime")) or 0.0):
            found = _status_after_run(found, run)
    return found


def _status_after_run(found: Manifest, run: RetentionRun) -> Manifest:
    """Return the status updated by a finished run."""
    found = {**found, "lastRunTime": time_of(run.started_at), "result": run.result}
    for name, value in (("message", run.message), ("plan", run.plan), ("anchor", run.anchor)):
        found.pop(name, None)
        if value:
            found[name] = value
    if run.result == _OK:
        found["lastSuccessTime"] = time_of(run.started_at)
    if run.active_hold_count is not None:
        found["holds"] = run.active_hold_count
        found["holdsNotInManifest"] = list(run.holds_outside_manifest)
        found["holdsNotInManifestCount"] = max(run.holds_outside_count, len(run.holds_outside_manifest))
    if run.result in (_OK, "staying", "not_anchored"):
        found["removedLogs"], found["erasedExchanges"] = run.removed, run.erased
        found["staying"] = [{"reason": code, "count": count} for code, count in run.retained_counts.items()]
    return found
