use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{
    Budget, Decision, Direction, Engine, Fault, Judgement, Match, MessageJudgement, Profile, RuleIndex,
    Scope, Scratch, Step, processor_time,
};
use proofgate_providers::{BodyText, MessagePlace};

use crate::counts::Counts;
use crate::placeholders::{self, Placeholder};
use crate::recall::{Recall, RecalledScan};
use crate::runs::Run;
use crate::same_values::SameValues;
use crate::spans::{MOST_MATCHES, Redaction, Spans};

/// Bytes of text between two looks at the clock.
const BETWEEN_LOOKS: usize = 8 * 1024;

/// What scanning a run costs at least, in bytes of a longer one.
const LEAST_OF_RUN: usize = 64;

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
        /// Whether the score of the message denies it, and not the rule's own action.
        by_score: bool,
    },
}

/// A text of a request that came from a tool, a result or a description, and is flagged for the instructions that it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolFlag {
    /// The number of its message.
    pub message: u32,
    /// What it is.
    pub scope: Scope,
    /// Where it stands.
    pub place: MessagePlace,
}

/// What the rules say about a request.
#[derive(Debug)]
pub struct RequestVerdict {
    /// What is to be done.
    pub outcome: Outcome,
    /// The rules that matched, the message that decides, and whether an enforced policy would block.
    pub judgement: Judgement,
    /// Where the message that decides stands; `None` if nothing matched.
    pub place: Option<MessagePlace>,
    /// What is replaced in the text; empty unless the outcome is [`Outcome::Redact`].
    pub redactions: Vec<Redaction>,
    /// What stands for values that are masked, and is put back in the answer.
    pub placeholders: Vec<Placeholder>,
    /// The texts of tools that are flagged as instructions, in the order of their messages.
    pub tool_flags: Vec<ToolFlag>,
}

impl RequestVerdict {
    /// No body that [`RequestVerdict::rewrite`] makes of `body`, from which `text` was read, has more bytes.
    pub fn longest_rewrite(&self, engine: &Engine, text: &BodyText, body: &[u8]) -> usize {
        let added = self.redactions.iter().map(|redaction| {
            // In every key that it touches stands its name, and a number behind it; around it there may be quotes.
            let most = text.most_parts(&redaction.range);
            let length = self
                .placeholder(redaction)
                .map_or(redaction.length(engine), str::len);
            most.saturating_mul(length + LONGEST_NUMBER)
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
            .map(|redaction| match self.placeholder(redaction) {
                Some(placeholder) => placeholder.to_owned(),
                None => redaction.replacement(engine),
            })
            .collect();
        let ranges = self.redactions.iter().map(|redaction| redaction.range.clone());
        let edits: Vec<(Range<usize>, &str)> = ranges.zip(names.iter().map(String::as_str)).collect();
        text.rewrite(body, &edits, out)
    }

    /// How many parts of the text each rule has redacted, or masked.
    pub fn replaced(&self, is_masked: bool) -> Counts {
        let redactions = self.redactions.iter();
        let replaced = redactions.filter(|redaction| redaction.mask.is_some() == is_masked);
        replaced.map(|redaction| redaction.rule).collect()
    }

    fn placeholder(&self, redaction: &Redaction) -> Option<&str> {
        let placeholder = self.placeholders.get(redaction.mask?)?;
        Some(&placeholder.name)
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
///
/// Each [run](Run) is scanned by itself. Then each message is judged by the matches that end in it.
#[derive(Debug)]
pub struct RequestInspection {
    run: Option<Run>,
    scan: RecalledScan,
    /// The number of the passage that the next run begins with.
    next: usize,
    found: Vec<Found>,
    budget: Budget,
    /// What is to be redacted, while the same values are looked for elsewhere.
    redacting: Option<Box<Redacting>>,
    /// Numbers of placeholders begin behind it.
    last_number: u32,
}

/// A request in which something is redacted.
#[derive(Debug)]
struct Redacting {
    verdict: RequestVerdict,
    spans: Spans,
    same: SameValues,
}

/// A match, and the message that it ends in.
#[derive(Debug, Clone, Copy)]
struct Found {
    at: Match,
    message: u32,
    scope: Scope,
}

impl RequestInspection {
    /// An inspection that has not begun, and may take `budget` of the processor's time.
    pub fn new(budget: Budget) -> Self {
        Self {
            run: None,
            scan: RecalledScan::default(),
            next: 0,
            found: Vec::new(),
            budget,
            redacting: None,
            last_number: 0,
        }
    }

    /// Has placeholders numbered from behind `last` on, of a request that goes on with what the provider keeps: there are
    /// placeholders in that, too, which stand for other values.
    #[must_use]
    pub fn numbering_behind(mut self, last: u32) -> Self {
        self.last_number = last;
        self
    }

    /// Bytes of memory that it takes beside the text.
    pub fn capacity(&self) -> usize {
        let redacting = self.redacting.as_ref();
        let same = redacting.map_or(0, |redacting| redacting.same.capacity());
        self.found.capacity() * size_of::<Found>() + self.scan.capacity() + same
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
        self.step_recalling(None, engine, profile, text, slice, scratch)
    }

    /// The same, where runs that are known are not scanned again. The verdict is the same, too.
    ///
    /// # Errors
    /// As for [`inspect_request`].
    pub fn step_recalling(
        &mut self,
        mut recall: Option<Recall<'_>>,
        engine: &Engine,
        profile: &Profile,
        text: &BodyText,
        slice: Duration,
        scratch: &mut Scratch,
    ) -> Result<Option<RequestVerdict>, Fault> {
        if let Some(mut redacting) = self.redacting.take() {
            if redacting.same.step(text)? == Step::Pending {
                self.redacting = Some(redacting);
                return Ok(None);
            }
            let Redacting { verdict, spans, same } = *redacting;
            return Ok(Some(verdict.with(
                same.with(spans),
                engine,
                text,
                self.last_number,
            )));
        }
        let (begin, mut left, mut unlooked) = (processor_time(), slice, 0);
        while let Some(run) = self.current(text) {
            let run_text = text.text().get(run.range.clone()).unwrap_or_default();
            let step = (self.scan).step(
                recall.as_mut(),
                engine,
                profile,
                run.scope,
                run_text,
                left,
                &mut self.budget,
                scratch,
            )?;
            if self.found.len() + self.scan.matches().len() > MOST_MATCHES {
                return Err(Fault::Budget);
            }
            if step == Step::Pending {
                return Ok(None);
            }
            self.end_run(text);
            unlooked += run_text.len().max(LEAST_OF_RUN);
            if unlooked > BETWEEN_LOOKS {
                unlooked = 0;
                left = slice.saturating_sub(processor_time().saturating_sub(begin));
                if left.is_zero() {
                    return Ok(None);
                }
            }
        }
        let (verdict, spans) = verdict(engine, profile, text, &mut self.found);
        if verdict.outcome == Outcome::Redact
            && let Some(same) = SameValues::new(text.text(), spans.all())
        {
            self.redacting = Some(Box::new(Redacting { verdict, spans, same }));
            return Ok(None);
        }
        Ok(Some(verdict.with(spans, engine, text, self.last_number)))
    }

    /// The messages in which something matched, once the verdict has come: number, scope and matches of each.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u32, Scope, Vec<Match>)> + '_ {
        let messages = self.found.chunk_by(|one, other| one.message == other.message);
        messages.map(|found| {
            let matches = found.iter().map(|found| found.at).collect();
            (found[0].message, found[0].scope, matches)
        })
    }

    /// The run whose scan goes on, or begins.
    fn current(&mut self, text: &BodyText) -> Option<Run> {
        if self.run.is_none() {
            self.run = Run::starting_with(text, self.next);
        }
        self.run.clone()
    }

    /// Takes over what was found in a run.
    fn end_run(&mut self, text: &BodyText) {
        let Some(Run {
            range,
            scope,
            passages,
        }) = self.run.take()
        else {
            return;
        };
        self.next = passages.end;
        for found in self.scan.matches() {
            let at = Match {
                start: range.start + found.start,
                end: range.start + found.end,
                ..*found
            };
            let passage = text.passage_at(at.end.saturating_sub(1).max(at.start));
            let Some(passage) = passage.and_then(|number| text.passage(number)) else {
                continue;
            };
            self.found.push(Found {
                at,
                message: passage.message,
                scope,
            });
        }
        self.scan.restart();
    }
}

/// Where what is replaced for a match ends: what belongs to it stands in the same passage.
fn end(engine: &Engine, text: &BodyText, at: &Match) -> usize {
    let passage = text.passage_at(at.start).and_then(|number| text.passage(number));
    let end = passage.map_or(at.end, |passage| passage.range.end.max(at.end));
    let until = text.text().get(..end);
    until.map_or(at.end, |text| {
        engine.replaced_end(at.rule, Direction::Request, text, at.end)
    })
}

/// What the matches come to, message by message.
fn verdict(
    engine: &Engine,
    profile: &Profile,
    text: &BodyText,
    found: &mut [Found],
) -> (RequestVerdict, Spans) {
    found.sort_unstable_by_key(|found| (found.message, found.at.start, found.at.end, found.at.rule));
    let mut judgement = Judgement::new();
    let mut spans = Spans::default();
    let mut matches = Vec::new();
    let mut tool_flags = Vec::new();
    for of_message in found.chunk_by(|one, other| one.message == other.message) {
        let Found { message, scope, .. } = of_message[0];
        let mut judged = MessageJudgement::default();
        matches.clear();
        for Found { at, .. } in of_message {
            judgement.note(at.rule);
            let decision = judged.note(profile, scope, at.rule);
            if matches!(decision, Some(Decision::Mask | Decision::Redact)) {
                let part = text.settled(at.start..end(engine, text, at));
                if !text.is_setting(&part) {
                    spans.add(at.rule, part, decision == Some(Decision::Mask));
                }
            }
            matches.push(*at);
        }
        judged.count(engine, profile, scope, &matches);
        judgement.add(profile, message, scope, &judged);
        let is_of_tool = matches!(scope, Scope::ToolResult | Scope::ToolDescription);
        if is_of_tool && judged.is_flagged_as_instructions(profile) {
            let place = text.place_of(message).unwrap_or(MessagePlace::UNNAMED);
            tool_flags.push(ToolFlag {
                message,
                scope,
                place,
            });
        }
    }
    let outcome = match judgement.decision() {
        Some(Decision::Block { rule, by_score }) => Outcome::Block { rule, by_score },
        Some(Decision::Redact | Decision::Mask) if !spans.is_empty() => Outcome::Redact,
        _ => Outcome::Allow,
    };
    let place = judgement.worst().and_then(|worst| text.place_of(worst.message));
    let verdict = RequestVerdict {
        outcome,
        judgement,
        place,
        redactions: Vec::new(),
        placeholders: Vec::new(),
        tool_flags,
    };
    (verdict, spans)
}

impl RequestVerdict {
    /// The verdict with what is to be replaced.
    fn with(mut self, spans: Spans, engine: &Engine, text: &BodyText, last_number: u32) -> Self {
        if self.outcome == Outcome::Redact {
            self.redactions = spans.into_redactions();
            self.redactions
                .retain(|redaction| !text.is_setting(&redaction.range));
            self.placeholders = placeholders::assign(engine, text.text(), last_number, &mut self.redactions);
        }
        self
    }
}
