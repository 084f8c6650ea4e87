//! Prefilter that tries all digit-triggered rules together. A table of numbers triggers these rules
//! nearly everywhere, and each rule alone would read the whole table.

use regex_automata::hybrid::dfa::Cache;

use crate::automaton::{Automaton, WalkOutcome};
use crate::budget::Clock;
use crate::digits::PositionBitmap;
use crate::hit::Hit;
use crate::match_range::MatchRange;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::shapes::Shape;
use crate::start_patterns::StartPatterns;
use crate::trigger::Trigger;
use crate::{EvaluationError, PolicyError, RuleIndex, View};

/// Maximum bytes that the walks over a text may read, per byte of the text. Beyond this limit, each
/// rule searches on its own.
const MAX_READ_FACTOR: usize = 8;

/// One automaton for the rules of a view that digits trigger.
pub(crate) struct DigitPrefilter {
    pub(crate) view: View,
    automaton: Automaton,
    /// The rules, indexed by pattern number.
    rules: Vec<RuleIndex>,
    starts: StartPatterns,
}

/// Buffers of a digit prefilter.
#[derive(Default)]
pub(crate) struct DigitPrefilterBuffers {
    cache: Option<Cache>,
    sums: Vec<u32>,
    /// Positions where a match can begin, as bits.
    candidates: Vec<u64>,
}

impl DigitPrefilter {
    /// Builds the prefilters for the rules that digits trigger, one for each view.
    pub(crate) fn build_all(rules: &[Rule]) -> Result<Vec<Self>, PolicyError> {
        let sieves = [View::Text, View::Folded].map(|view| Self::build(rules, view));
        sieves.into_iter().filter_map(Result::transpose).collect()
    }

    /// Returns `None` if digits trigger no rule of this view.
    fn build(rules: &[Rule], view: View) -> Result<Option<Self>, PolicyError> {
        let (mut numbers, mut patterns, mut densities) = (Vec::new(), Vec::new(), Vec::new());
        let mut shapes = Vec::new();
        for (number, rule) in (0_u16..).zip(rules) {
            let Trigger::Digits(least) = rule.trigger else {
                continue;
            };
            if rule.view != view {
                continue;
            }
            numbers.push(RuleIndex(number));
            patterns.push(&rule.pattern.hir);
            let of_rule = Shape::from_hir(&rule.pattern.hir);
            if !of_rule.iter().all(Shape::has_digits) {
                densities.push((least, rule.pattern.max_len));
            }
            shapes.extend(of_rule);
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            view,
            automaton: Automaton::build(&patterns)?,
            rules: numbers,
            starts: StartPatterns::from_shapes(shapes, &densities),
        }))
    }

    /// Adds a hit for every position at which a match of one of the `active` rules begins. `places`
    /// are the digits and word starts of `ground`, from its first undecided position on.
    pub(crate) fn collect_hits(
        &self,
        active: &RuleSet,
        ground: &MatchRange<'_>,
        places: &PositionBitmap,
        residue: &mut DigitPrefilterBuffers,
        hits: &mut Vec<Hit>,
        clock: &mut Clock<'_>,
    ) -> Result<(), EvaluationError> {
        let MatchRange { bytes, from, to, .. } = *ground;
        let has_digits = places.digits.iter().any(|digits| *digits != 0);
        if !has_digits || !self.rules.iter().any(|rule| active.contains(*rule)) {
            return Ok(());
        }
        let DigitPrefilterBuffers {
            cache,
            sums,
            candidates,
        } = residue;
        self.starts
            .fill_candidates(places, &bytes[from..], sums, candidates);
        let cache = cache.get_or_insert_with(|| self.automaton.create_cache());
        let mut left = (bytes.len() - from).saturating_mul(MAX_READ_FACTOR);
        for (word, first) in candidates.iter().zip((from..to).step_by(u64::BITS as usize)) {
            let mut bits = *word;
            while bits != 0 {
                let place = first + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if place >= to {
                    break;
                }
                if !self.automaton.can_start_at(bytes, place) {
                    continue;
                }
                let length = self.walk(active, cache, ground, place, hits)?;
                clock.charge_pass(length)?;
                let Some(rest) = left.checked_sub(length) else {
                    let rules = self.rules.iter().filter(|rule| active.contains(**rule));
                    hits.extend(rules.map(|rule| Hit::new(*rule, place + 1 - from, usize::MAX)));
                    return Ok(());
                };
                left = rest;
            }
        }
        Ok(())
    }

    /// Adds a hit for every rule that has a match beginning at `place`. Returns the number of bytes read.
    fn walk(
        &self,
        active: &RuleSet,
        cache: &mut Cache,
        ground: &MatchRange<'_>,
        place: usize,
        hits: &mut Vec<Hit>,
    ) -> Result<usize, EvaluationError> {
        let (at, known) = (place - ground.from, hits.len());
        let mut found = |pattern: usize| {
            let rule = self.rules[pattern];
            if active.contains(rule) && !hits[known..].iter().any(|hit| hit.rule == rule) {
                hits.push(Hit::new(rule, at, at));
            }
        };
        match self
            .automaton
            .walk(cache, ground.bytes, place, |pattern, _| found(pattern))?
        {
            WalkOutcome::Dead(length) => Ok(length),
            WalkOutcome::Alive(state) => {
                self.automaton.finish(cache, state, &mut found)?;
                Ok(ground.bytes.len() - place)
            }
        }
    }
}
