//! Evaluates rules on bodies, which are read and inspected as in a worker.

use std::sync::Arc;

use proofgate_inspect::{
    CallGuard, Denial, GuardAction, InspectionOutcome, ReadBuffers, ResponseInspector, ResponseKind,
    ToolFlag, inspect_request, inspects_responses,
};
use proofgate_json::Workspace;
use proofgate_ledger::record::{FlaggedToolText, GuardVerdict, GuardedCall, PolicyNote};
use proofgate_policy::{Direction, Engine, EvaluationError, Judgement, Mode, Profile, Scratch};
use proofgate_providers::{BodyKind, BodyText, Dialect, MessageLocation, ParsedRequest};

use crate::configuration::{Configuration, ReplayPolicy};
use crate::direction_verdict::{DirectionVerdict, VerdictKind};

/// Buffers that are reused between evaluations.
#[derive(Default)]
pub(crate) struct EvaluationBuffers {
    scratch: Scratch,
    workspace: Workspace,
    text: BodyText,
    reading: ReadBuffers,
}

/// How much of an answer's inspection can be repeated with the client's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseExtent {
    /// The whole inspection: the client received all inspected text, to the end.
    Full,
    /// The part before the answer was cut off. The end of the answer was never evaluated.
    Partial,
}

/// The result of the rules.
pub(crate) enum RuleResult {
    /// A verdict.
    Verdict(DirectionVerdict),
    /// No verdict: a stable machine code for the reason, and what the rules had found before.
    NoVerdict(&'static str, DirectionVerdict),
}

/// Evaluates the rules on a JSON request.
pub(crate) fn evaluate_request(
    configuration: &Configuration,
    terms: &ReplayPolicy,
    dialect: Dialect,
    body: &[u8],
    tools: &mut EvaluationBuffers,
) -> RuleResult {
    let (engine, profile) = (&configuration.engine, &terms.profile);
    let EvaluationBuffers {
        scratch,
        workspace,
        text,
        ..
    } = tools;
    text.set_attachments(configuration.attachments);
    let read = ParsedRequest::body_as_str(body)
        .and_then(|body| ParsedRequest::read_text(dialect, body, workspace, text));
    let call = match read {
        Ok(call) => call,
        Err(bad) => return RuleResult::Verdict(DirectionVerdict::undecided(VerdictKind::Refuse, bad.code())),
    };
    if profile.is_idle(Direction::Request) {
        return RuleResult::Verdict(DirectionVerdict::passed(None));
    }
    if call.token_ids.is_some() {
        return RuleResult::Verdict(DirectionVerdict::undecided(
            VerdictKind::Refuse,
            "token_ids_not_readable",
        ));
    }
    let verdict = match inspect_request(engine, profile, text, engine.budget(text.text().len()), scratch) {
        Ok(verdict) => verdict,
        Err(fault) => return RuleResult::NoVerdict(fault.code(), DirectionVerdict::passed(None)),
    };
    let redacted = verdict.outcome == InspectionOutcome::Redact;
    let mut note = policy_note(engine, &verdict.judgement, verdict.location, redacted);
    if let Some(note) = &mut note {
        note.from_tool = flagged_tool_note(&verdict.tool_flags);
    }
    RuleResult::Verdict(match verdict.outcome {
        InspectionOutcome::Block { .. } => DirectionVerdict::denied(note.as_ref()),
        InspectionOutcome::Allow | InspectionOutcome::Redact => DirectionVerdict::passed(note.as_ref()),
    })
}

/// Detects the kind of an answer by its first bytes; `None` when they do not show it.
pub(crate) fn response_kind(dialect: Dialect, body: &[u8]) -> Option<ResponseKind> {
    match BodyKind::detect(body) {
        Some(BodyKind::Events) => Some(ResponseKind::Events),
        Some(BodyKind::Object) => Some(ResponseKind::Unary),
        Some(BodyKind::Other) | None => {
            (body.is_empty() || dialect.can_respond_with_text()).then_some(ResponseKind::Unary)
        }
    }
}

/// Returns the guard that looks for calls of guarded tools, for an answer to a request with flagged
/// tool texts. Records do not contain which approval applied. `is_approved` is whether a record
/// contains an approval.
pub(crate) fn call_guard(terms: &ReplayPolicy, is_approved: bool) -> Option<CallGuard> {
    let (tools, _) = terms.guarded_tools.as_ref()?;
    let approved = if is_approved { tools.entries().len() } else { 0 };
    let action = match terms.profile.mode() {
        Mode::Enforce => GuardAction::Deny,
        Mode::DryRun => GuardAction::Observe,
    };
    Some(CallGuard::new(Arc::clone(tools), 0..approved, action))
}

/// Returns the record's note about calls of guarded tools; `None` when there are none.
fn guarded_call_note(terms: &ReplayPolicy, calls: &CallGuard) -> Option<GuardedCall<'static>> {
    let (tools, refused) = terms.guarded_tools.as_ref()?;
    let (entry, verdict) = match (calls.guarded_call(), calls.approved_call()) {
        (Some(entry), _) if terms.profile.mode() == Mode::DryRun => (entry, GuardVerdict::Observed),
        (Some(entry), _) => (entry, *refused),
        (None, Some(entry)) => (entry, GuardVerdict::Approved),
        (None, None) => return None,
    };
    Some(GuardedCall {
        tool: tools.entries().nth(entry)?.to_owned().into(),
        verdict,
        approval: None,
    })
}

/// Evaluates the rules, and `guard` if there is one, on an answer as its client received it.
pub(crate) fn evaluate_response(
    configuration: &Configuration,
    (terms, profile): (&ReplayPolicy, &Profile),
    guard: Option<CallGuard>,
    (dialect, kind): (Dialect, ResponseKind),
    body: &[u8],
    extent: ResponseExtent,
    tools: &mut EvaluationBuffers,
) -> RuleResult {
    if (guard.is_none() && !inspects_responses(profile)) || body.is_empty() {
        return RuleResult::Verdict(DirectionVerdict::passed(None));
    }
    let engine = &configuration.engine;
    let EvaluationBuffers { scratch, reading, .. } = tools;
    let mut inspector = ResponseInspector::new(dialect, kind, configuration.body_bytes);
    if let Some(guard) = guard {
        inspector.set_call_guard(guard);
    }
    let mut out = Vec::new();
    let mut pushed = inspector.push(engine, profile, scratch, reading, body, &mut out);
    if extent == ResponseExtent::Full && pushed.is_ok() {
        pushed = inspector.finish(engine, profile, scratch, reading, &mut out);
    }
    let mut note = policy_note(engine, inspector.judgement(), None, inspector.is_redacted());
    let calls = inspector.call_guard();
    if let Some(call) = calls.and_then(|calls| guarded_call_note(terms, calls)) {
        let note = note.get_or_insert_default();
        note.would_block |= call.verdict == GuardVerdict::Observed;
        note.guarded_call = Some(call);
    }
    let passed = DirectionVerdict::passed(note.as_ref());
    match pushed {
        Ok(()) => RuleResult::Verdict(passed),
        Err(Denial::Blocked { .. } | Denial::GuardedCall) => {
            RuleResult::Verdict(DirectionVerdict::denied(note.as_ref()))
        }
        // In dry-run mode, a worker passes the rest of the answer, and records the findings so far.
        Err(denial) if profile.mode() == Mode::DryRun => RuleResult::NoVerdict(denial.code(), passed),
        Err(Denial::Malformed) => RuleResult::Verdict(DirectionVerdict::undecided(
            VerdictKind::Block,
            Denial::Malformed.code(),
        )),
        Err(denial) => RuleResult::NoVerdict(denial.code(), passed),
    }
}

/// Returns the record's note about the rules; `None` when no rule matched.
fn policy_note<'e>(
    engine: &'e Engine,
    judgement: &Judgement,
    place: Option<MessageLocation>,
    redacted: bool,
) -> Option<PolicyNote<'e>> {
    judgement.decision()?;
    let matched = judgement
        .matched_rules()
        .map(|rule| engine.rule(rule).id.as_str());
    let note = PolicyNote::from_rules(judgement.score(), matched, redacted, judgement.would_block());
    let scope = judgement.worst().map(|worst| worst.scope.as_str());
    let place = place
        .filter(|place| !place.field.is_empty())
        .map(|place| place.to_string());
    Some(note.with_message(scope, place, judgement.is_flagged()))
}

/// Returns the record's note about flagged tool texts; `None` when there are none.
fn flagged_tool_note(flags: &[ToolFlag]) -> Option<FlaggedToolText<'static>> {
    let first = flags.first()?;
    let is_named = !first.location.field.is_empty();
    Some(FlaggedToolText {
        scope: first.scope.as_str().into(),
        message: is_named.then(|| first.location.to_string().into()),
        count: u32::try_from(flags.len()).unwrap_or(u32::MAX),
    })
}

/// The code of a panic outside of the rules.
pub(crate) const PANICKED: &str = EvaluationError::Panicked.code();

/// Returns a stream without its last event, which may be the gateway's own.
pub(crate) fn without_last_event(body: &[u8]) -> &[u8] {
    let end = body.trim_ascii_end();
    let ends_at = |blank: &[u8]| {
        let found = end.windows(blank.len()).rposition(|window| window == blank)?;
        Some(found + blank.len())
    };
    let before = ends_at(b"\n\n").max(ends_at(b"\n\r\n")).max(ends_at(b"\r\r"));
    &body[..before.unwrap_or(0)]
}
