use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{
    Budget, Decision, Direction, Engine, Fault, Judgement, Match, Profile, RuleIndex, Scan, Scratch, Step,
};
use proofgate_providers::BodyText;

use crate::spans::{Redaction, Spans};

/// Matches that one text may have: what is noted of them, and of what takes their place, is some hundred bytes each.
pub(crate) const MOST_MATCHES: usize = 100_000;

/// Most bytes of the number that tells changed keys apart, with its `#`: a text has less than 2^32 bytes.
const LONGEST_NUMBER: usize = 11;

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
    /// No body that [`RequestVerdict::rewrite`] makes of `body`, from which `text` was read, has more bytes.
    pub fn longest_rewrite(&self, engine: &Engine, text: &BodyText, body: &[u8]) -> usize {
        let added = self.redactions.iter().map(|redaction| {
            // In every key that it touches stands its name, and a number behind it.
            let most = text.most_parts(&redaction.range);
            most.saturating_mul(redaction.length(engine) + LONGEST_NUMBER)
        });
        added.fold(body.len(), usize::saturating_add)
    }

    /// Writes the body with the redactions carried out; `out` is emptied first. `text` was read from `body`.
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
/// [`Fault`] when there is no result, also of a text with more than 100,000 matches; the request has to be denied then.
pub fn inspect_request(
    engine: &Engine,
    profile: &Profile,
    text: &BodyText,
    budget: Budget,
    scratch: &mut Scratch,
) -> Result<RequestVerdict, Fault> {
    let mut inspection = RequestInspection::new(budget);
    loop {
        if let Some(verdict) = inspection.step(engine, profile, text, Duration::MAX, scratch)? {
            return Ok(verdict);
        }
    }
}

/// The same in slices of time, between which others are served: a long text must not stop everybody else.
#[derive(Debug)]
pub struct RequestInspection {
    scan: Scan,
    found: Vec<Match>,
    budget: Budget,
}

impl RequestInspection {
    /// An inspection that has not begun, and may take `budget` of the processor's time.
    pub fn new(budget: Budget) -> Self {
        Self {
            scan: Scan::new(),
            found: Vec::new(),
            budget,
        }
    }

    /// Bytes of memory that it takes beside the text.
    pub fn capacity(&self) -> usize {
        self.found.capacity() * size_of::<Match>()
    }

    /// Goes on for about `slice` of the processor's time with a text, the same for every step. The verdict comes with the
    /// last one.
    ///
    /// # Errors
    /// As for [`inspect_request`].
    pub fn step(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        text: &BodyText,
        slice: Duration,
        scratch: &mut Scratch,
    ) -> Result<Option<RequestVerdict>, Fault> {
        let step = self.scan.step(
            engine,
            profile,
            Direction::Request,
            text.text(),
            slice,
            &mut self.budget,
            scratch,
            &mut self.found,
        )?;
        if self.found.len() > MOST_MATCHES {
            return Err(Fault::Budget);
        }
        Ok((step == Step::Done).then(|| verdict(engine, profile, text, &mut self.found)))
    }
}

/// What the matches come to, without those of rules that do not look where they stand.
fn verdict(engine: &Engine, profile: &Profile, text: &BodyText, found: &mut Vec<Match>) -> RequestVerdict {
    found.retain(|found| {
        engine.rule(found.rule).instructions || !text.is_instructions(&(found.start..found.end))
    });
    found.sort_unstable_by_key(|found: &Match| (found.start, found.end, found.rule));
    let mut judgement = Judgement::new();
    let mut spans = Spans::default();
    for found in found {
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
    RequestVerdict {
        outcome,
        judgement,
        redactions,
    }
}
