//! What the policy says of a request, before a byte of it goes anywhere.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use proofgate_inspect::{Outcome, Stop, inspect_request};
use proofgate_ledger::record::PolicyNote;
use proofgate_policy::{Deadline, Direction, Engine, Judgement, Mode};
use proofgate_providers::BodyText;

use crate::catalog::Catalog;
use crate::gateway::Gateway;
use crate::rejection::Rejection;

/// A request that may go on.
#[derive(Default)]
pub(crate) struct Judged<'c> {
    /// What was seen in it; `None` when no rule matched.
    pub(crate) note: Option<PolicyNote<'c>>,
    /// Where the model's name stands in the rewritten body, when something was redacted.
    pub(crate) rewritten: Option<Range<usize>>,
}

/// A request that may not.
pub(crate) struct Denied<'c> {
    pub(crate) rejection: Rejection,
    pub(crate) note: Option<PolicyNote<'c>>,
}

/// Judges a request by its tenant's rules; what has to be redacted is, in a copy of the body in `out`.
pub(crate) fn judge<'c>(
    gateway: &Gateway,
    catalog: &'c Catalog,
    tenant: usize,
    text: &BodyText,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<Judged<'c>, Box<Denied<'c>>> {
    let (engine, profile) = (&catalog.terms.engine, &catalog.terms.profiles[tenant]);
    if profile.is_idle(Direction::Request) {
        return Ok(Judged::default());
    }
    let deadline = Deadline::from(Instant::now(), engine.budget());
    let scanned = inspect_request(
        engine,
        profile,
        text,
        &deadline,
        &mut gateway.scratch.borrow_mut(),
    );
    let verdict = match scanned {
        Ok(verdict) => verdict,
        Err(fault) => {
            gateway.metrics.policy_fault();
            if profile.mode() == Mode::DryRun {
                let note = Some(PolicyNote {
                    would_block: true,
                    ..PolicyNote::default()
                });
                return Ok(Judged {
                    note,
                    rewritten: None,
                });
            }
            return Err(Box::new(Denied {
                rejection: Rejection::from(fault),
                note: None,
            }));
        }
    };
    if verdict.judgement.decision().is_none() {
        return Ok(Judged::default());
    }
    let redacted = verdict.outcome == Outcome::Redact;
    let note = Some(note(engine, &verdict.judgement, redacted));
    if let Outcome::Block { rule, .. } = verdict.outcome {
        gateway.metrics.policy_blocked();
        let rejection = Rejection::blocked(&engine.rule(rule).id, &engine.rule(rule).reason);
        return Err(Box::new(Denied { rejection, note }));
    }
    let rewritten = redacted.then(|| verdict.rewrite(engine, text, body, out));
    Ok(Judged { note, rewritten })
}

impl Gateway {
    /// What the client is told of an answer that may not go on.
    pub(crate) fn response_stopped(&self, engine: &Engine, stop: Stop) -> Rejection {
        match stop {
            Stop::Blocked { rule, .. } => {
                self.metrics.policy_blocked();
                Rejection::blocked(&engine.rule(rule).id, &engine.rule(rule).reason)
            }
            Stop::Fault(fault) => {
                self.metrics.policy_fault();
                Rejection::from(fault)
            }
            Stop::TooLarge | Stop::Malformed => {
                self.metrics.policy_fault();
                Rejection::unreadable_answer(stop.code(), stop.to_string())
            }
        }
    }
}

/// Rules that a record names at most: their ids have to fit into the room that is set aside for it.
const MOST_NAMED: usize = 16;

/// What a record says of a judgement.
pub(crate) fn note<'c>(engine: &'c Engine, judgement: &Judgement, redacted: bool) -> PolicyNote<'c> {
    let matched = judgement.matched().count();
    PolicyNote {
        score: judgement.score(),
        rules: judgement
            .matched()
            .take(MOST_NAMED)
            .map(|rule| Cow::Borrowed(engine.rule(rule).id.as_str()))
            .collect(),
        unnamed: u32::try_from(matched.saturating_sub(MOST_NAMED)).unwrap_or(u32::MAX),
        redacted,
        would_block: judgement.would_block(),
    }
}

/// The same, for a record that is made after its configuration may be gone.
pub(crate) fn owned(note: PolicyNote<'_>) -> PolicyNote<'static> {
    PolicyNote {
        score: note.score,
        rules: note
            .rules
            .into_iter()
            .map(|rule| Cow::Owned(rule.into_owned()))
            .collect(),
        unnamed: note.unnamed,
        redacted: note.redacted,
        would_block: note.would_block,
    }
}
