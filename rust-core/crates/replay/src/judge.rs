//! What rules make of bodies, read and inspected as a worker does.

use proofgate_inspect::{
    AnswerKind, Denial, Outcome, Reading, ResponseInspector, inspect_request, needs_response,
};
use proofgate_json::Workspace;
use proofgate_ledger::record::PolicyNote;
use proofgate_policy::{Direction, Engine, Fault, Judgement, Mode, Profile, Scratch};
use proofgate_providers::{BodyKind, BodyText, Call, Dialect, MessagePlace};

use crate::configuration::{Configuration, Terms};
use crate::side::{Side, Word};

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
pub(crate) enum Seen {
    /// A verdict.
    Verdict(Side),
    /// None: why, as a stable machine code. What they had found before that.
    None(&'static str, Side),
}

/// What rules make of a request in JSON.
pub(crate) fn request(
    configuration: &Configuration,
    terms: &Terms,
    dialect: Dialect,
    body: &[u8],
    tools: &mut Tools,
) -> Seen {
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
        Err(bad) => return Seen::Verdict(Side::refused(Word::Refuse, bad.code())),
    };
    if profile.is_idle(Direction::Request) {
        return Seen::Verdict(Side::passed(None));
    }
    if call.token_ids.is_some() {
        return Seen::Verdict(Side::refused(Word::Refuse, "token_ids_not_readable"));
    }
    let verdict = match inspect_request(engine, profile, text, engine.budget(text.text().len()), scratch) {
        Ok(verdict) => verdict,
        Err(fault) => return Seen::None(fault.code(), Side::passed(None)),
    };
    let redacted = verdict.outcome == Outcome::Redact;
    let note = note(engine, &verdict.judgement, verdict.place, redacted);
    Seen::Verdict(match verdict.outcome {
        Outcome::Block { .. } => Side::denied(note.as_ref()),
        Outcome::Allow | Outcome::Redact => Side::passed(note.as_ref()),
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

/// What rules make of an answer as its client got it.
pub(crate) fn response(
    configuration: &Configuration,
    profile: &Profile,
    (dialect, kind): (Dialect, AnswerKind),
    body: &[u8],
    extent: Extent,
    tools: &mut Tools,
) -> Seen {
    if !needs_response(profile) || body.is_empty() {
        return Seen::Verdict(Side::passed(None));
    }
    let engine = &configuration.engine;
    let Tools { scratch, reading, .. } = tools;
    let mut inspector = ResponseInspector::new(dialect, kind, configuration.body_bytes);
    let mut out = Vec::new();
    let mut pushed = inspector.push(engine, profile, scratch, reading, body, &mut out);
    if extent == Extent::Whole && pushed.is_ok() {
        pushed = inspector.finish(engine, profile, scratch, reading, &mut out);
    }
    let note = note(engine, inspector.judgement(), None, inspector.is_redacted());
    let passed = Side::passed(note.as_ref());
    match pushed {
        Ok(()) => Seen::Verdict(passed),
        Err(Denial::Blocked { .. }) => Seen::Verdict(Side::denied(note.as_ref())),
        // In dry-run mode a worker lets the rest of the answer pass, and tells what was found until then.
        Err(denial) if profile.mode() == Mode::DryRun => Seen::None(denial.code(), passed),
        Err(Denial::Malformed) => Seen::Verdict(Side::refused(Word::Block, Denial::Malformed.code())),
        Err(denial) => Seen::None(denial.code(), passed),
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
