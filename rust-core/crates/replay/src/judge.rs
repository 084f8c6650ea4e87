//! What rules make of bodies, read and inspected as a worker does.

use std::sync::Arc;

use proofgate_inspect::{
    AnswerKind, CallGuard, Denial, GuardAction, Outcome, Reading, ResponseInspector, ToolFlag,
    inspect_request, needs_response,
};
use proofgate_json::Workspace;
use proofgate_ledger::record::{FromTool, GuardVerdict, GuardedCall, PolicyNote};
use proofgate_policy::{Direction, Engine, Fault, Judgement, Mode, Profile, Scratch};
use proofgate_providers::{BodyKind, BodyText, Call, Dialect, MessagePlace};

use crate::configuration::{Configuration, Terms};
use crate::side::{SideVerdict, VerdictKind};

/// Memory that one evaluation leaves to the next.
#[derive(Default)]
pub(crate) struct Tools {
    scratch: Scratch,
    workspace: Workspace,
    text: BodyText,
    reading: Reading,
}

/// How much of an answer's inspection a client's bytes can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it: they are what was inspected, to its end.
    Whole,
    /// What came before the answer broke off. Its end was never judged.
    Begun,
}

/// What rules came to.
pub(crate) enum RuleResult {
    /// A verdict.
    Verdict(SideVerdict),
    /// None: why, as a stable machine code. What they had found before that.
    None(&'static str, SideVerdict),
}

/// What rules make of a request in JSON.
pub(crate) fn request(
    configuration: &Configuration,
    terms: &Terms,
    dialect: Dialect,
    body: &[u8],
    tools: &mut Tools,
) -> RuleResult {
    let (engine, profile) = (&configuration.engine, &terms.profile);
    let Tools {
        scratch,
        workspace,
        text,
        ..
    } = tools;
    text.set_attachments(configuration.attachments);
    let read = Call::text_of(body).and_then(|body| Call::read_text(dialect, body, workspace, text));
    let call = match read {
        Ok(call) => call,
        Err(bad) => return RuleResult::Verdict(SideVerdict::refused(VerdictKind::Refuse, bad.code())),
    };
    if profile.is_idle(Direction::Request) {
        return RuleResult::Verdict(SideVerdict::passed(None));
    }
    if call.token_ids.is_some() {
        return RuleResult::Verdict(SideVerdict::refused(
            VerdictKind::Refuse,
            "token_ids_not_readable",
        ));
    }
    let verdict = match inspect_request(engine, profile, text, engine.budget(text.text().len()), scratch) {
        Ok(verdict) => verdict,
        Err(fault) => return RuleResult::None(fault.code(), SideVerdict::passed(None)),
    };
    let redacted = verdict.outcome == Outcome::Redact;
    let mut note = note(engine, &verdict.judgement, verdict.place, redacted);
    if let Some(note) = &mut note {
        note.from_tool = from_tool(&verdict.tool_flags);
    }
    RuleResult::Verdict(match verdict.outcome {
        Outcome::Block { .. } => SideVerdict::denied(note.as_ref()),
        Outcome::Allow | Outcome::Redact => SideVerdict::passed(note.as_ref()),
    })
}

/// What an answer is, by its first bytes; `None` where those do not tell.
pub(crate) fn kind_of(dialect: Dialect, body: &[u8]) -> Option<AnswerKind> {
    match BodyKind::of(body) {
        Some(BodyKind::Events) => Some(AnswerKind::Events),
        Some(BodyKind::Object) => Some(AnswerKind::Unary),
        Some(BodyKind::Other) | None => {
            (body.is_empty() || dialect.answers_text()).then_some(AnswerKind::Unary)
        }
    }
}

/// What looks for calls of guarded tools, in an answer to a request with flagged texts of tools. By what they were approved
/// no record tells: `is_approved` is what one says.
pub(crate) fn guard_of(terms: &Terms, is_approved: bool) -> Option<CallGuard> {
    let (tools, _) = terms.guarded.as_ref()?;
    let approved = if is_approved { tools.entries().len() } else { 0 };
    let action = match terms.profile.mode() {
        Mode::Enforce => GuardAction::Deny,
        Mode::DryRun => GuardAction::Observe,
    };
    Some(CallGuard::new(Arc::clone(tools), 0..approved, action))
}

/// What a record would say of calls of guarded tools; `None` where there are none.
fn guarded_call(terms: &Terms, calls: &CallGuard) -> Option<GuardedCall<'static>> {
    let (tools, refused) = terms.guarded.as_ref()?;
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

/// What rules make of an answer as its client got it, and `guard` if there is one.
pub(crate) fn response(
    configuration: &Configuration,
    (terms, profile): (&Terms, &Profile),
    guard: Option<CallGuard>,
    (dialect, kind): (Dialect, AnswerKind),
    body: &[u8],
    extent: Extent,
    tools: &mut Tools,
) -> RuleResult {
    if (guard.is_none() && !needs_response(profile)) || body.is_empty() {
        return RuleResult::Verdict(SideVerdict::passed(None));
    }
    let engine = &configuration.engine;
    let Tools { scratch, reading, .. } = tools;
    let mut inspector = ResponseInspector::new(dialect, kind, configuration.body_bytes);
    if let Some(guard) = guard {
        inspector.guard_calls(guard);
    }
    let mut out = Vec::new();
    let mut pushed = inspector.push(engine, profile, scratch, reading, body, &mut out);
    if extent == Extent::Whole && pushed.is_ok() {
        pushed = inspector.finish(engine, profile, scratch, reading, &mut out);
    }
    let mut note = note(engine, inspector.judgement(), None, inspector.is_redacted());
    let calls = inspector.call_guard();
    if let Some(call) = calls.and_then(|calls| guarded_call(terms, calls)) {
        let note = note.get_or_insert_default();
        note.would_block |= call.verdict == GuardVerdict::Observed;
        note.guarded_call = Some(call);
    }
    let passed = SideVerdict::passed(note.as_ref());
    match pushed {
        Ok(()) => RuleResult::Verdict(passed),
        Err(Denial::Blocked { .. } | Denial::GuardedCall) => {
            RuleResult::Verdict(SideVerdict::denied(note.as_ref()))
        }
        // In dry-run mode a worker lets the rest of the answer pass, and tells what was found until then.
        Err(denial) if profile.mode() == Mode::DryRun => RuleResult::None(denial.code(), passed),
        Err(Denial::Malformed) => {
            RuleResult::Verdict(SideVerdict::refused(VerdictKind::Block, Denial::Malformed.code()))
        }
        Err(denial) => RuleResult::None(denial.code(), passed),
    }
}

/// What a record would say; `None` where no rule matched.
fn note<'e>(
    engine: &'e Engine,
    judgement: &Judgement,
    place: Option<MessagePlace>,
    redacted: bool,
) -> Option<PolicyNote<'e>> {
    judgement.decision()?;
    let matched = judgement.matched().map(|rule| engine.rule(rule).id.as_str());
    let note = PolicyNote::of(judgement.score(), matched, redacted, judgement.would_block());
    let scope = judgement.worst().map(|worst| worst.scope.as_str());
    let place = place
        .filter(|place| !place.field.is_empty())
        .map(|place| place.to_string());
    Some(note.about(scope, place, judgement.is_flagged()))
}

/// What a record would say of flagged texts of tools; `None` where there are none.
fn from_tool(flags: &[ToolFlag]) -> Option<FromTool<'static>> {
    let first = flags.first()?;
    let is_named = !first.place.field.is_empty();
    Some(FromTool {
        scope: first.scope.as_str().into(),
        message: is_named.then(|| first.place.to_string().into()),
        count: u32::try_from(flags.len()).unwrap_or(u32::MAX),
    })
}

/// The code of a panic that no rule caught.
pub(crate) const PANICKED: &str = Fault::Panicked.code();

/// A stream without the event that it ends with, which may be one of the gateway's own.
pub(crate) fn without_last_event(body: &[u8]) -> &[u8] {
    let end = body.trim_ascii_end();
    let ends_at = |blank: &[u8]| {
        let found = end.windows(blank.len()).rposition(|window| window == blank)?;
        Some(found + blank.len())
    };
    let before = ends_at(b"\n\n").max(ends_at(b"\n\r\n")).max(ends_at(b"\r\r"));
    &body[..before.unwrap_or(0)]
}
