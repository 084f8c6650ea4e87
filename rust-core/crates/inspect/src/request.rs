use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{
    Budget, Decision, Direction, Engine, EvaluationError, Judgement, Match, MessageJudgement, Profile,
    RuleIndex, Scope, Scratch, Step, thread_cpu_time,
};
use proofgate_providers::{BodyText, MessageLocation};

use crate::cached_scan::{CachedScan, TenantScanCache};
use crate::counts::ReplacementCounts;
use crate::placeholders::{self, Placeholder};
use crate::repeated_values::RepeatedValueSearch;
use crate::runs::Run;
use crate::spans::{MAX_MATCHES, Redaction, Spans};

/// Bytes of text between two clock readings.
const CLOCK_INTERVAL_BYTES: usize = 8 * 1024;

/// Minimum cost of scanning a run, in bytes of a longer one.
const MIN_RUN_COST: usize = 64;

/// Maximum bytes of the number that distinguishes changed keys, including its `#`: a text has less than 2^32 bytes.
const MAX_NUMBER_BYTES: usize = 11;

/// The outcome of the inspection of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectionOutcome {
    /// The request is forwarded unchanged.
    Allow,
    /// The request is forwarded with parts of its text replaced.
    Redact,
    /// The request is denied.
    Block {
        /// The rule that denies it.
        rule: RuleIndex,
        /// Whether the score of the message denies it, rather than the rule's own action.
        by_score: bool,
    },
}

/// A text of a tool in a request, a result or a description, that is flagged for the instructions in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolFlag {
    /// The index of its message.
    pub message: u32,
    /// The scope of the text.
    pub scope: Scope,
    /// The location of the text in the request.
    pub location: MessageLocation,
}

/// The result of the rules for a request.
#[derive(Debug)]
pub struct RequestVerdict {
    /// The outcome.
    pub outcome: InspectionOutcome,
    /// The rules that matched, the determining message, and whether an enforced policy would block.
    pub judgement: Judgement,
    /// The location of the determining message; `None` if nothing matched.
    pub location: Option<MessageLocation>,
    /// The redactions in the text; empty unless the outcome is [`InspectionOutcome::Redact`].
    pub redactions: Vec<Redaction>,
    /// The placeholders of masked values, with the values to restore in the response.
    pub placeholders: Vec<Placeholder>,
    /// The texts of tools that are flagged as instructions, in message order.
    pub tool_flags: Vec<ToolFlag>,
}

impl RequestVerdict {
    /// Returns an upper bound, in bytes, for the body that [`RequestVerdict::rewrite`] writes.
    /// `text` was read from `body`.
    pub fn max_rewrite_bytes(&self, engine: &Engine, text: &BodyText, body: &[u8]) -> usize {
        let added = self.redactions.iter().map(|redaction| {
            // In every key that the redaction touches, the replacement can have a number after it
            // and quotes around it.
            let most = text.max_replacements(&redaction.range);
            let length = self
                .placeholder(redaction)
                .map_or(redaction.replacement_length(engine), str::len);
            most.saturating_mul(length + MAX_NUMBER_BYTES)
        });
        added.fold(body.len(), usize::saturating_add)
    }

    /// Writes the body with its redactions to `out`, which is cleared first. `text` was read from `body`.
    ///
    /// Returns the range in `out` of the value of `model`, including quotes.
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

    /// Returns how many parts of the text each rule has redacted, or masked.
    pub fn replacement_counts(&self, is_masked: bool) -> ReplacementCounts {
        let redactions = self.redactions.iter();
        let replaced = redactions.filter(|redaction| redaction.mask.is_some() == is_masked);
        replaced.map(|redaction| redaction.rule).collect()
    }

    fn placeholder(&self, redaction: &Redaction) -> Option<&str> {
        let placeholder = self.placeholders.get(redaction.mask?)?;
        Some(&placeholder.name)
    }
}

/// Applies the rules to the text of a request. Allocates only if something matches.
///
/// # Errors
/// [`EvaluationError`] if there is no result, which includes a text with more than 100,000 matches; the request has to be
/// denied then.
pub fn inspect_request(
    engine: &Engine,
    profile: &Profile,
    text: &BodyText,
    budget: Budget,
    scratch: &mut Scratch,
) -> Result<RequestVerdict, EvaluationError> {
    let mut inspection = RequestInspection::new(budget);
    loop {
        if let Some(verdict) = inspection.step(engine, profile, text, Duration::MAX, scratch)? {
            return Ok(verdict);
        }
    }
}

/// The inspection of a request in time slices, between which other requests are served, so that a long text does not block
/// them.
///
/// Each [run](Run) is scanned separately. Then each message is judged by the matches that end in it.
#[derive(Debug)]
pub struct RequestInspection {
    run: Option<Run>,
    scan: CachedScan,
    /// The index of the first passage of the next run.
    next_passage: usize,
    found: Vec<FoundMatch>,
    budget: Budget,
    /// The pending redaction, while the text is searched for the same values.
    redaction: Option<Box<PendingRedaction>>,
    /// Placeholders are numbered after this number.
    last_number: u32,
}

/// A request with redactions.
#[derive(Debug)]
struct PendingRedaction {
    verdict: RequestVerdict,
    spans: Spans,
    same_values: RepeatedValueSearch,
}

/// A match, and the message in which it ends.
#[derive(Debug, Clone, Copy)]
struct FoundMatch {
    matched: Match,
    message: u32,
    scope: Scope,
}

impl RequestInspection {
    /// Creates an inspection that has not started and may use `budget` of CPU time.
    pub fn new(budget: Budget) -> Self {
        Self {
            run: None,
            scan: CachedScan::default(),
            next_passage: 0,
            found: Vec::new(),
            budget,
            redaction: None,
            last_number: 0,
        }
    }

    /// Numbers placeholders after `last`, for a request that continues a conversation stored by the provider: its
    /// placeholders stand for other values.
    #[must_use]
    pub fn with_last_placeholder_number(mut self, last: u32) -> Self {
        self.last_number = last;
        self
    }

    /// Returns the memory in use besides the text, in bytes.
    pub fn capacity(&self) -> usize {
        let redacting = self.redaction.as_ref();
        let same = redacting.map_or(0, |redacting| redacting.same_values.capacity());
        self.found.capacity() * size_of::<FoundMatch>() + self.scan.capacity_bytes() + same
    }

    /// Continues with a text, which must be the same in every step, for about `slice` of CPU time.
    /// The last step returns the verdict.
    ///
    /// # Errors
    /// Same as [`inspect_request`].
    pub fn step(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        text: &BodyText,
        slice: Duration,
        scratch: &mut Scratch,
    ) -> Result<Option<RequestVerdict>, EvaluationError> {
        self.step_with_cache(None, engine, profile, text, slice, scratch)
    }

    /// Like [`step`](RequestInspection::step), but does not scan cached runs again. The verdict is the same.
    ///
    /// # Errors
    /// Same as [`inspect_request`].
    pub fn step_with_cache(
        &mut self,
        mut recall: Option<TenantScanCache<'_>>,
        engine: &Engine,
        profile: &Profile,
        text: &BodyText,
        slice: Duration,
        scratch: &mut Scratch,
    ) -> Result<Option<RequestVerdict>, EvaluationError> {
        if let Some(mut redacting) = self.redaction.take() {
            if redacting.same_values.step(text)? == Step::Pending {
                self.redaction = Some(redacting);
                return Ok(None);
            }
            let PendingRedaction {
                verdict,
                spans,
                same_values: same,
            } = *redacting;
            return Ok(Some(verdict.with_redactions(
                same.merge_with(spans),
                engine,
                text,
                self.last_number,
            )));
        }
        let (begin, mut left, mut unlooked) = (thread_cpu_time(), slice, 0);
        while let Some(run) = self.current_run(text) {
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
            if self.found.len() + self.scan.matches().len() > MAX_MATCHES {
                return Err(EvaluationError::BudgetExceeded);
            }
            if step == Step::Pending {
                return Ok(None);
            }
            self.finish_run(text);
            unlooked += run_text.len().max(MIN_RUN_COST);
            if unlooked > CLOCK_INTERVAL_BYTES {
                unlooked = 0;
                left = slice.saturating_sub(thread_cpu_time().saturating_sub(begin));
                if left.is_zero() {
                    return Ok(None);
                }
            }
        }
        let (verdict, spans) = build_verdict(engine, profile, text, &mut self.found);
        if verdict.outcome == InspectionOutcome::Redact
            && let Some(same) = RepeatedValueSearch::new(text.text(), spans.as_slice())
        {
            self.redaction = Some(Box::new(PendingRedaction {
                verdict,
                spans,
                same_values: same,
            }));
            return Ok(None);
        }
        Ok(Some(verdict.with_redactions(
            spans,
            engine,
            text,
            self.last_number,
        )))
    }

    /// Returns the messages with matches, once there is a verdict: index, scope and matches of each.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u32, Scope, Vec<Match>)> + '_ {
        let messages = self.found.chunk_by(|one, other| one.message == other.message);
        messages.map(|found| {
            let matches = found.iter().map(|found| found.matched).collect();
            (found[0].message, found[0].scope, matches)
        })
    }

    /// Returns the run that is scanned, or the next one.
    fn current_run(&mut self, text: &BodyText) -> Option<Run> {
        if self.run.is_none() {
            self.run = Run::starting_at(text, self.next_passage);
        }
        self.run.clone()
    }

    /// Records the matches found in a run.
    fn finish_run(&mut self, text: &BodyText) {
        let Some(Run {
            range,
            scope,
            passages,
        }) = self.run.take()
        else {
            return;
        };
        self.next_passage = passages.end;
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
            self.found.push(FoundMatch {
                matched: at,
                message: passage.message,
                scope,
            });
        }
        self.scan.restart();
    }
}

/// Returns the end of the replacement for a match; it does not extend beyond the passage of the match.
fn replacement_end(engine: &Engine, text: &BodyText, at: &Match) -> usize {
    let passage = text.passage_at(at.start).and_then(|number| text.passage(number));
    let end = passage.map_or(at.end, |passage| passage.range.end.max(at.end));
    let until = text.text().get(..end);
    until.map_or(at.end, |text| {
        engine.replacement_end(at.rule, Direction::Request, text, at.end)
    })
}

/// Builds the verdict from the matches, message by message.
fn build_verdict(
    engine: &Engine,
    profile: &Profile,
    text: &BodyText,
    found: &mut [FoundMatch],
) -> (RequestVerdict, Spans) {
    found.sort_unstable_by_key(|found| {
        (
            found.message,
            found.matched.start,
            found.matched.end,
            found.matched.rule,
        )
    });
    let mut judgement = Judgement::new();
    let mut spans = Spans::default();
    let mut matches = Vec::new();
    let mut tool_flags = Vec::new();
    for of_message in found.chunk_by(|one, other| one.message == other.message) {
        let FoundMatch { message, scope, .. } = of_message[0];
        let mut judged = MessageJudgement::default();
        matches.clear();
        for FoundMatch { matched: at, .. } in of_message {
            judgement.record(at.rule);
            let decision = judged.record(profile, scope, at.rule);
            if matches!(decision, Some(Decision::Mask | Decision::Redact)) {
                let part = text.align_to_escapes(at.start..replacement_end(engine, text, at));
                if !text.is_required_number(&part) {
                    spans.add(at.rule, part, decision == Some(Decision::Mask));
                }
            }
            matches.push(*at);
        }
        judged.count(engine, profile, scope, &matches);
        judgement.add(profile, message, scope, &judged);
        let is_of_tool = matches!(scope, Scope::ToolResult | Scope::ToolDescription);
        if is_of_tool && judged.is_flagged_as_instructions(profile) {
            let place = text.message_location(message).unwrap_or(MessageLocation::UNKNOWN);
            tool_flags.push(ToolFlag {
                message,
                scope,
                location: place,
            });
        }
    }
    let outcome = match judgement.decision() {
        Some(Decision::Block { rule, by_score }) => InspectionOutcome::Block { rule, by_score },
        Some(Decision::Redact | Decision::Mask) if !spans.is_empty() => InspectionOutcome::Redact,
        _ => InspectionOutcome::Allow,
    };
    let place = judgement
        .worst()
        .and_then(|worst| text.message_location(worst.message));
    let verdict = RequestVerdict {
        outcome,
        judgement,
        location: place,
        redactions: Vec::new(),
        placeholders: Vec::new(),
        tool_flags,
    };
    (verdict, spans)
}

impl RequestVerdict {
    /// Adds the redactions to the verdict.
    fn with_redactions(mut self, spans: Spans, engine: &Engine, text: &BodyText, last_number: u32) -> Self {
        if self.outcome == InspectionOutcome::Redact {
            self.redactions = spans.into_redactions();
            self.redactions
                .retain(|redaction| !text.is_required_number(&redaction.range));
            self.placeholders = placeholders::assign(engine, text.text(), last_number, &mut self.redactions);
        }
        self
    }
}
