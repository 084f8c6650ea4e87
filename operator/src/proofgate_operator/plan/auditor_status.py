"""Evaluates the auditor's reports: the condition Audited, and `.status.auditor`.

True: the auditor verifies, is up to date and has found nothing. False: it found something, its state does not
continue the held checkpoint, or it needs help. Unknown: nothing is known, or not yet. The gateway serves
requests in any case.
"""

import math
import re
from collections.abc import Iterable

from proofgate_schema.counts import format_count

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.plan.audit_key import AUDITOR_FIELD
from proofgate_operator.plan.audit_reports import AuditReport, Finding, WitnessStatus
from proofgate_operator.plan.pods import pod_trouble
from proofgate_operator.plan.rfc3339 import time_of
from proofgate_operator.plan.status_inputs import StatusInputs

#: Reasons for findings, by the worst verdict; the worst first.
VERDICT_REASONS = {"invalid": "LedgerInvalid", "diverged": "LedgerDiverged", "incomplete": "LedgerIncomplete"}
#: Reasons why an auditor does not start, by the code at the end of its last log line.
START_REFUSAL_REASONS = {
    "auditor_state_lost": "AuditorStateLost",
    "auditor_state_missing": "AuditorStateLost",
    "auditor_state_set_back": "AuditorStateSetBack",
    "auditor_state_corrupt": "AuditorStateCorrupt",
    "auditor_state_exists": "AuditorStateCorrupt",
    "auditor_state_io": "AuditorStateUnusable",
    "auditor_held_refused": "AuditorKeyReplaced",
    "auditor_key": "AuditorKeyInvalid",
    "auditor_policy": "WitnessPolicyInvalid",
    "auditor_witness_ca": "CertificateInvalid",
}
#: Reasons that report evidence: they are announced whatever the previous reason was.
EVIDENCE_REASONS = (*VERDICT_REASONS.values(), "AuditorStateLost", "AuditorStateSetBack", "AuditorForked")
#: Seconds after which an unverified checkpoint means that the auditor is behind.
_MAX_LAG_SECONDS = 300
_ERROR_CODE = re.compile(r"\[([a-z_]+)\]\s*\Z")
_MAX_LISTED_FINDINGS = 3
#: The outcome of a request that was cosigned, and the maximum number of other witnesses that a message names.
_COSIGNED = "cosigned"
_MAX_NAMED_WITNESSES = 8


def _condition(holds: bool | None, reason: str, message: str) -> Condition:
    status = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}[holds]
    return Condition(ConditionType.AUDITED, status, reason, message)


def audited_condition(situation: StatusInputs) -> tuple[Condition, ...]:
    """Return the condition Audited of a gateway with an auditor; empty without an auditor."""
    gateway, seen = situation.gateway, situation.seen
    if gateway.enabled_auditor is None:
        return ()
    if situation.auditor_conflicts:
        taken = ", ".join(str(ref) for ref in situation.auditor_conflicts)
        message = (
            f"{taken}: exists and does not belong to this gateway; rename the gateway or delete the object"
        )
        return (_condition(False, "NameTaken", message),)
    aggregate = situation.held_aggregate
    if aggregate.fork:
        return (
            _condition(
                False,
                "AuditorForked",
                f"{aggregate.fork}: the auditor's state was copied, or its key has leaked",
            ),
        )
    if aggregate.rollback:
        return (
            _condition(
                False,
                "AuditorStateSetBack",
                f"{aggregate.rollback}: the auditor's state was rolled back or lost",
            ),
        )
    faults = [fault for fault in situation.configuration.faults if fault.field == AUDITOR_FIELD]
    # Findings are evidence, even if the auditor's own configuration is faulty.
    found = _reported_problem(situation) if faults else None
    if found:
        return (found,)
    for fault in faults:
        return (_condition(False, fault.reason, fault.message),)
    report = seen.audit_report
    if report is not None and report.reachable:
        return (_condition_from_report(situation, report),)
    if seen.child("StatefulSet", names(gateway).auditor) is None:
        return (_condition(None, "AuditorNotMade", "the auditor's StatefulSet does not exist"),)
    refusal = _start_refusal(seen.auditor_pod)
    if refusal:
        return (refusal,)
    kept = _previous_evidence(situation)
    if kept:
        return (kept,)
    if seen.auditor_pod is None:
        return (_condition(None, "AuditorMissing", "the auditor has no pod"),)
    trouble = pod_trouble(seen.auditor_pod)
    return (_condition(None, "AuditorUnreachable", trouble or "the auditor does not answer on its port"),)


def _reported_problem(situation: StatusInputs) -> Condition | None:
    """Return the problem of the ledger that the auditor reports, or reported before it became unreachable or
    untrusted; None if there is none."""
    report = situation.seen.audit_report
    told = (
        report is not None
        and report.reachable
        and (situation.held_aggregate.reported or _awaits_first_publication(situation, report))
    )
    if report is None or not told:
        return _previous_evidence(situation)
    return (
        _condition(False, _worst_reason(report.findings), _describe_findings(report))
        if report.finding_counts
        else None
    )


def _condition_from_report(situation: StatusInputs, report: AuditReport) -> Condition:
    reported = situation.held_aggregate.reported
    if reported is None and not _awaits_first_publication(situation, report):
        key = situation.configuration.auditor_key
        return _condition(
            None,
            "AuditorKeyDiffers",
            f"the auditor's report is not signed by the key {key.name if key else ''} of its Secret: the "
            "auditor is being replaced, or another process answers",
        )
    if report.finding_counts:
        return _condition(False, _worst_reason(report.findings), _describe_findings(report))
    if not report.last_poll_at:
        return _condition(None, "AuditorStarting", "the auditor has not finished its first poll")
    if report.stale:
        return _condition(None, "AuditorStalled", "the auditor's last poll is more than a minute old")
    if report.lag >= _MAX_LAG_SECONDS:
        return _condition(None, "AuditorBehind", f"a checkpoint has waited for {report.lag} s to be verified")
    if reported is None or report.cosignature_wait_seconds >= _quorum_deadline_seconds(situation):
        return _missing_cosignatures(situation, report)
    return _condition(
        True,
        "NothingFound",
        "the ledger is verified up to the newest of "
        f"{format_count(reported.size, 'tree head')}{_index_problem(report)}",
    )


def _index_problem(report: AuditReport) -> str:
    """Return the problem of the index as text; it does not affect the audit itself."""
    stuck = report.index is not None and report.index.code
    return f"; the auditor's index of exchanges stopped: {stuck}" if stuck else ""


def _awaits_first_publication(situation: StatusInputs, report: AuditReport) -> bool:
    """Return whether the auditor answers but has published nothing yet, because its witnesses have cosigned
    nothing."""
    asks = (
        situation.gateway.enabled_auditor is not None
        and situation.gateway.enabled_auditor.witnesses is not None
    )
    return asks and report.reachable and not report.checkpoint


def _quorum_deadline_seconds(situation: StatusInputs) -> float:
    """Return how long tree heads may wait for a quorum, in seconds."""
    witnesses = situation.gateway.enabled_auditor.witnesses if situation.gateway.enabled_auditor else None
    # Without witnesses, it is being replaced by an auditor that waits for none.
    return witnesses.deadline_seconds if witnesses else math.inf


def _missing_cosignatures(situation: StatusInputs, report: AuditReport) -> Condition:
    late = report.cosignature_wait_seconds >= _quorum_deadline_seconds(situation)
    message = (
        f"tree heads have waited for {report.cosignature_wait_seconds} s for a quorum of witnesses"
        if late
        else "no quorum of witnesses has cosigned the log of tree heads yet"
    )
    missing = [
        _describe_witness(witness) for witness in report.witnesses if witness.last_outcome != _COSIGNED
    ]
    if missing:
        more = (
            f", and {len(missing) - _MAX_NAMED_WITNESSES} more" if len(missing) > _MAX_NAMED_WITNESSES else ""
        )
        message = f"{message}: {', '.join(missing[:_MAX_NAMED_WITNESSES])}{more}"
    return _condition(False if late else None, "NotCosigned", message)


def _describe_witness(witness: WitnessStatus) -> str:
    return f"{witness.name} ({witness.last_outcome or 'no request yet'})"


def _worst_reason(findings: Iterable[Finding]) -> str:
    verdicts = {finding.verdict for finding in findings}
    return next(
        (reason for verdict, reason in VERDICT_REASONS.items() if verdict in verdicts),
        VERDICT_REASONS["diverged"],
    )


def _describe_findings(report: AuditReport) -> str:
    counted = ", ".join(f"{code} ({count})" for code, count in report.finding_counts)
    newest = [
        f"{finding.code}: {finding.origin}: {finding.message}"
        for finding in report.findings[-_MAX_LISTED_FINDINGS:]
    ]
    return f"the auditor found {counted}. {'; '.join(reversed(newest))}"


def _start_refusal(pod: Manifest | None) -> Condition | None:
    """Return why the auditor refused to start, from the last line of its container's log."""
    for container in ((pod or {}).get("status") or {}).get("containerStatuses") or []:
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            last = str((state.get("terminated") or {}).get("message") or "").strip().rsplit("\n", 1)[-1]
            code = _ERROR_CODE.search(last)
            if code and code[1] in START_REFUSAL_REASONS:
                return _condition(False, START_REFUSAL_REASONS[code[1]], last.removeprefix("proofgate: "))
    return None


def _previous_evidence(situation: StatusInputs) -> Condition | None:
    """Return what was found before the auditor stopped answering: evidence stays valid."""
    for condition in situation.seen.previous_conditions:
        if (
            condition.get("type") == ConditionType.AUDITED
            and condition.get("reason") in VERDICT_REASONS.values()
        ):
            return _condition(False, condition["reason"], str(condition.get("message", "")))
    return None


def auditor_status(situation: StatusInputs) -> Manifest:
    """Return `.status.auditor`; it stays unchanged while the auditor cannot be asked."""
    gateway, report, told = situation.gateway, situation.seen.audit_report, situation.held_aggregate.reported
    if gateway.enabled_auditor is None:
        return {}
    key = situation.configuration.auditor_key
    if key is None or report is None or (told is None and not _awaits_first_publication(situation, report)):
        return situation.seen.auditor_status
    found: Manifest = {
        "origin": key.name,
        "verifyingKey": key.verifying_text,
        "lagSeconds": report.lag,
        "findings": [{"code": code, "count": number} for code, number in report.finding_counts],
    }
    if (exports := situation.configuration.export_key) is not None:
        found["exportVerifyingKey"] = exports.verifying_text
    elif former := situation.seen.auditor_status.get("exportVerifyingKey"):
        # Earlier exports are verified with this key.
        found["exportVerifyingKey"] = former
    if told is not None:
        found["size"] = told.size
    if report.newest_head_at:
        found["newestHeadTime"] = time_of(report.newest_head_at)
    if report.last_poll_at:
        found["lastPollTime"] = time_of(report.last_poll_at)
    if report.omitted_findings:
        found["findingsLeftOut"] = report.omitted_findings
    if report.witnesses:
        found["witnesses"] = [_witness_status(witness) for witness in report.witnesses]
        found["cosigningLagSeconds"] = report.cosignature_wait_seconds
    if report.index is not None:
        found["index"] = {"recordsBehind": report.index.pending_records}
        if report.index.code:
            found["index"]["problem"] = report.index.code
    return found


def _witness_status(witness: WitnessStatus) -> Manifest:
    item: Manifest = {"name": witness.name, "size": witness.size}
    if witness.last_outcome:
        item["lastResult"] = witness.last_outcome
    if witness.time:
        item["cosignedTime"] = time_of(witness.time)
    return item
