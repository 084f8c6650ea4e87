//! The findings of the rules in the texts of a response.

use std::time::Duration;

use proofgate_policy::{
    Budget, Decision, Direction, Engine, EvaluationError, Judgement, Match, MessageJudgement, Mode, Profile,
    RuleIndex, Scope, Scratch, Step,
};
use proofgate_providers::BodyText;

use crate::counts::ReplacementCounts;
use crate::denial::Denial;
use crate::spans::{MAX_MATCHES, Spans};
use crate::text_scan::FullScan;

/// Maximum total length, in bytes, of texts that are scanned in one slice.
pub(crate) const MAX_SLICE_BYTES: usize = 16 * 1024;

/// The rules, and the state that is needed to run them.
pub(crate) struct RuleContext<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) profile: &'a Profile,
    pub(crate) budget: Budget,
    pub(crate) scratch: &'a mut Scratch,
}

/// The results of the rules for a response so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) judgement: Judgement,
    /// The response, which is one message.
    pub(crate) response: MessageJudgement,
    pub(crate) matches: Vec<Match>,
    pub(crate) redaction_counts: ReplacementCounts,
    pub(crate) blocking_rule: Option<(RuleIndex, bool)>,
}

impl Findings {
    /// Continues the scan of a complete text, which may be that of a document, for a time slice; when the scan is done, adds
    /// the ranges to replace to `spans`.
    pub(crate) fn step_scan(
        &mut self,
        scan: &mut FullScan,
        rules: &mut RuleContext<'_>,
        slice: Duration,
        (text, scope): (&str, Scope),
        document: Option<&BodyText>,
        spans: &mut Spans,
    ) -> Result<Step, Denial> {
        let RuleContext {
            engine,
            profile,
            budget,
            scratch,
        } = rules;
        let found = &mut self.matches;
        let step = match profile.is_idle_in(scope) {
            true => Step::Done,
            false => scan.step(engine, profile, scope, text, slice, budget, scratch, found)?,
        };
        if found.len() > MAX_MATCHES {
            return Err(EvaluationError::BudgetExceeded.into());
        }
        if step == Step::Done {
            let seen = scan.visible_text(text);
            let end = |found: &Match| {
                let passage =
                    document.and_then(|document| document.passage(document.passage_at(found.start)?));
                let end = passage.map_or(seen.len(), |passage| passage.range.end.max(found.end));
                let until = seen.get(..end).unwrap_or_default();
                (rules.engine).replacement_end(found.rule, Direction::Response, until, found.end)
            };
            self.judge(rules, scope, spans, document, |_| false, end);
            let found = std::mem::take(&mut self.matches);
            self.count(rules, scope, &found);
            self.matches = found;
            self.matches.clear();
            *scan = FullScan::default();
        }
        Ok(step)
    }

    /// Scans a complete text; adds the ranges to replace to `spans`.
    pub(crate) fn scan_text(
        &mut self,
        rules: &mut RuleContext<'_>,
        text: (&str, Scope),
        document: Option<&BodyText>,
        spans: &mut Spans,
    ) -> Result<(), Denial> {
        self.matches.clear();
        let mut scan = FullScan::default();
        while self.step_scan(&mut scan, rules, Duration::MAX, text, document, spans)? == Step::Pending {}
        Ok(())
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.matches.capacity() * size_of::<Match>()
    }

    /// Releases the memory of buffers with more than `most` bytes.
    pub(crate) fn release_memory(&mut self, most: usize) {
        self.matches.clear();
        self.matches.shrink_to(most / size_of::<Match>());
    }

    /// Judges each match in `found` on its own. `is_late`: whether a part of the match was already released unchanged.
    /// `end`: returns where the replacement of a match ends.
    pub(crate) fn judge(
        &mut self,
        rules: &RuleContext<'_>,
        scope: Scope,
        spans: &mut Spans,
        document: Option<&BodyText>,
        is_late: impl Fn(&Match) -> bool,
        mut end: impl FnMut(&Match) -> usize,
    ) {
        sort_matches(&mut self.matches);
        let is_enforced = rules.profile.mode() == Mode::Enforce;
        let is_setting = |found: &Match| {
            document.is_some_and(|document| document.is_required_number(&(found.start..found.end)))
        };
        for found in &self.matches {
            self.judgement.record(found.rule);
            // Nothing in a response is masked: the client sees its original text.
            match self.response.record(rules.profile, scope, found.rule) {
                Some(Decision::Redact) if is_setting(found) => {}
                Some(Decision::Redact) if is_enforced && is_late(found) => {
                    self.blocking_rule.get_or_insert((found.rule, false));
                }
                Some(Decision::Redact) if is_enforced => {
                    self.redaction_counts.add(found.rule);
                    spans.add(found.rule, found.start..end(found), false);
                }
                _ => {}
            }
        }
    }

    /// Counts matches, which are sorted by start and do not overlap any others, and updates the decision.
    pub(crate) fn count(&mut self, rules: &RuleContext<'_>, scope: Scope, found: &[Match]) {
        let RuleContext { engine, profile, .. } = rules;
        self.response.count(engine, profile, scope, found);
        self.judgement.add(profile, 0, Scope::Response, &self.response);
        if let Some(Decision::Block { rule, by_score }) = self.judgement.decision() {
            self.blocking_rule.get_or_insert((rule, by_score));
        }
    }

    /// Returns how often each rule found a value that is replaced.
    pub(crate) fn redaction_counts(&self) -> &ReplacementCounts {
        &self.redaction_counts
    }

    pub(crate) fn check_not_blocked(&self) -> Result<(), Denial> {
        match self.blocking_rule {
            Some((rule, by_score)) => Err(Denial::Blocked { rule, by_score }),
            None => Ok(()),
        }
    }
}

/// Sorts matches by start.
pub(crate) fn sort_matches(found: &mut [Match]) {
    found.sort_unstable_by_key(|found| (found.start, found.end, found.rule));
}
