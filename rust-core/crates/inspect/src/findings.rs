//! What the rules find in the texts of an answer.

use std::time::Duration;

use proofgate_policy::{
    Budget, Decision, Direction, Engine, Fault, Judgement, Match, MessageJudgement, Mode, Profile, RuleIndex,
    Scope, Scratch, Step,
};
use proofgate_providers::BodyText;

use crate::counts::Counts;
use crate::denial::Denial;
use crate::marked::WholeScan;
use crate::spans::{MOST_MATCHES, Spans};

/// Texts that together are longer than this, in bytes, are not scanned in one slice.
pub(crate) const TOGETHER: usize = 16 * 1024;

/// The rules and what they need to run.
pub(crate) struct Rules<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) profile: &'a Profile,
    pub(crate) budget: Budget,
    pub(crate) scratch: &'a mut Scratch,
}

/// What the rules have said about an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) judgement: Judgement,
    /// The answer, which is one message.
    pub(crate) answer: MessageJudgement,
    pub(crate) found: Vec<Match>,
    pub(crate) redacted: Counts,
    pub(crate) blocked: Option<(RuleIndex, bool)>,
}

impl Findings {
    /// Goes on with the scan of a text that is there as a whole, perhaps that of a document, for a slice of time; when it is
    /// done, adds to `spans` what is to be replaced in it.
    pub(crate) fn step(
        &mut self,
        scan: &mut WholeScan,
        rules: &mut Rules<'_>,
        slice: Duration,
        (text, scope): (&str, Scope),
        document: Option<&BodyText>,
        spans: &mut Spans,
    ) -> Result<Step, Denial> {
        let Rules {
            engine,
            profile,
            budget,
            scratch,
        } = rules;
        let found = &mut self.found;
        let step = match profile.is_idle_in(scope) {
            true => Step::Done,
            false => scan.step(engine, profile, scope, text, slice, budget, scratch, found)?,
        };
        if found.len() > MOST_MATCHES {
            return Err(Fault::Budget.into());
        }
        if step == Step::Done {
            let seen = scan.seen(text);
            let end = |found: &Match| {
                let passage =
                    document.and_then(|document| document.passage(document.passage_at(found.start)?));
                let end = passage.map_or(seen.len(), |passage| passage.range.end.max(found.end));
                let until = seen.get(..end).unwrap_or_default();
                (rules.engine).replaced_end(found.rule, Direction::Response, until, found.end)
            };
            self.judge(rules, scope, spans, document, |_| false, end);
            let found = std::mem::take(&mut self.found);
            self.count(rules, scope, &found);
            self.found = found;
            self.found.clear();
            *scan = WholeScan::default();
        }
        Ok(step)
    }

    /// Scans a text that is there as a whole; adds to `spans` what is to be replaced in it.
    pub(crate) fn whole(
        &mut self,
        rules: &mut Rules<'_>,
        text: (&str, Scope),
        document: Option<&BodyText>,
        spans: &mut Spans,
    ) -> Result<(), Denial> {
        self.found.clear();
        let mut scan = WholeScan::default();
        while self.step(&mut scan, rules, Duration::MAX, text, document, spans)? == Step::Pending {}
        Ok(())
    }

    /// Bytes of memory that is taken, for the most part.
    pub(crate) fn capacity(&self) -> usize {
        self.found.capacity() * size_of::<Match>()
    }

    /// Gives back the memory of what has more than `most` bytes.
    pub(crate) fn give_back(&mut self, most: usize) {
        self.found.clear();
        self.found.shrink_to(most / size_of::<Match>());
    }

    /// Judges what was found by itself. `is_late`: whether a part of a match has left as it was. `end`: where what is replaced
    /// for one ends.
    pub(crate) fn judge(
        &mut self,
        rules: &Rules<'_>,
        scope: Scope,
        spans: &mut Spans,
        document: Option<&BodyText>,
        is_late: impl Fn(&Match) -> bool,
        mut end: impl FnMut(&Match) -> usize,
    ) {
        sort(&mut self.found);
        let is_enforced = rules.profile.mode() == Mode::Enforce;
        let is_setting =
            |found: &Match| document.is_some_and(|document| document.is_setting(&(found.start..found.end)));
        for found in &self.found {
            self.judgement.note(found.rule);
            // Nothing of an answer is masked: the client sees what stands in it.
            match self.answer.note(rules.profile, scope, found.rule) {
                Some(Decision::Redact) if is_setting(found) => {}
                Some(Decision::Redact) if is_enforced && is_late(found) => {
                    self.blocked.get_or_insert((found.rule, false));
                }
                Some(Decision::Redact) if is_enforced => {
                    self.redacted.add(found.rule);
                    spans.add(found.rule, found.start..end(found), false);
                }
                _ => {}
            }
        }
    }

    /// Counts matches, which are sorted by where they begin and which no others overlap, and decides.
    pub(crate) fn count(&mut self, rules: &Rules<'_>, scope: Scope, found: &[Match]) {
        let Rules { engine, profile, .. } = rules;
        self.answer.count(engine, profile, scope, found);
        self.judgement.add(profile, 0, Scope::Answer, &self.answer);
        if let Some(Decision::Block { rule, by_score }) = self.judgement.decision() {
            self.blocked.get_or_insert((rule, by_score));
        }
    }

    /// How often each rule has found what is replaced.
    pub(crate) fn redacted(&self) -> &Counts {
        &self.redacted
    }

    pub(crate) fn check(&self) -> Result<(), Denial> {
        match self.blocked {
            Some((rule, by_score)) => Err(Denial::Blocked { rule, by_score }),
            None => Ok(()),
        }
    }
}

/// By where matches begin.
pub(crate) fn sort(found: &mut [Match]) {
    found.sort_unstable_by_key(|found| (found.start, found.end, found.rule));
}
