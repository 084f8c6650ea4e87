use std::ops::Range;

use proofgate_policy::{
    Deadline, Decision, Direction, Engine, Fault, Judgement, Match, Profile, RuleIndex, Scratch,
};
use proofgate_providers::BodyText;

use crate::spans::{Redaction, Spans};

/// What is to be done with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It goes upstream as it came.
    Allow,
    /// It goes upstream with parts of its text replaced.
    Redact,
    /// It is denied.
    Block {
        /// The rule that denies it.
        rule: RuleIndex,
        /// Whether the sum of scores denies it, and not the rule's own action.
        by_score: bool,
    },
}

/// What the rules say about a request.
#[derive(Debug)]
pub struct RequestVerdict {
    /// What is to be done.
    pub outcome: Outcome,
    /// The rules that matched, their score, and whether an enforced policy would block.
    pub judgement: Judgement,
    /// What is replaced in the text; empty unless the outcome is [`Outcome::Redact`].
    pub redactions: Vec<Redaction>,
}

impl RequestVerdict {
    /// Writes the body with the redactions carried out; `out` is emptied first. `text` was read from `body`.
    ///
    /// Two keys of one object can become the same when both are redacted; the last one counts for most parsers then.
    ///
    /// Returns where in `out` the value of `model` stands, quotes included.
    pub fn rewrite(&self, engine: &Engine, text: &BodyText, body: &[u8], out: &mut Vec<u8>) -> Range<usize> {
        let names: Vec<String> = self
            .redactions
            .iter()
            .map(|redaction| redaction.replacement(engine))
            .collect();
        let ranges = self.redactions.iter().map(|redaction| redaction.range.clone());
        let edits: Vec<(Range<usize>, &str)> = ranges.zip(names.iter().map(String::as_str)).collect();
        text.rewrite(body, &edits, out)
    }
}

/// Applies the rules to the text of a request. Allocates only when something matches.
///
/// # Errors
/// [`Fault`] when there is no result; the request has to be denied then.
pub fn inspect_request(
    engine: &Engine,
    profile: &Profile,
    text: &BodyText,
    deadline: &Deadline,
    scratch: &mut Scratch,
) -> Result<RequestVerdict, Fault> {
    let mut found = Vec::new();
    engine.scan(
        profile,
        Direction::Request,
        text.text(),
        deadline,
        scratch,
        &mut found,
    )?;
    found.sort_unstable_by_key(|found: &Match| (found.start, found.end, found.rule));
    let mut judgement = Judgement::new();
    let mut spans = Spans::default();
    for found in &found {
        if judgement.add(engine, profile, found.rule) == Decision::Redact {
            spans.add(found);
        }
    }
    let outcome = match judgement.decision() {
        Some(Decision::Block { rule, by_score }) => Outcome::Block { rule, by_score },
        Some(Decision::Redact) => Outcome::Redact,
        Some(Decision::Flag) | None => Outcome::Allow,
    };
    let redactions = match outcome {
        Outcome::Redact => spans.into_redactions(),
        _ => Vec::new(),
    };
    Ok(RequestVerdict {
        outcome,
        judgement,
        redactions,
    })
}
