//! Rules that digits wake, tried together: a table of numbers wakes them nearly everywhere, and each of them alone would
//! read all of it.

use regex_automata::hybrid::dfa::Cache;

use crate::automaton::{Automaton, Walk};
use crate::budget::Clock;
use crate::digits::Places;
use crate::ground::MatchRange;
use crate::hit::Hit;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::shapes::Shape;
use crate::starts::Starts;
use crate::wake::Wake;
use crate::{Fault, PolicyError, RuleIndex, View};

/// What the walks over a text may read, in bytes for each of its own. Beyond it the rules search for themselves.
const MOST_READ: usize = 8;

/// One automaton for the rules of a view that digits wake.
pub(crate) struct Sieve {
    pub(crate) view: View,
    automaton: Automaton,
    /// The rules, by the numbers of their patterns.
    rules: Vec<RuleIndex>,
    starts: Starts,
}

/// Buffers of a sieve.
#[derive(Default)]
pub(crate) struct Residue {
    cache: Option<Cache>,
    sums: Vec<u32>,
    /// Where a match can begin, as bits.
    candidates: Vec<u64>,
}

impl Sieve {
    /// Those of rules that digits wake, by their view.
    pub(crate) fn build_all(rules: &[Rule]) -> Result<Vec<Self>, PolicyError> {
        let sieves = [View::Text, View::Folded].map(|view| Self::build(rules, view));
        sieves.into_iter().filter_map(Result::transpose).collect()
    }

    /// None, if digits wake no rule of this view.
    fn build(rules: &[Rule], view: View) -> Result<Option<Self>, PolicyError> {
        let (mut numbers, mut patterns, mut densities) = (Vec::new(), Vec::new(), Vec::new());
        let mut shapes = Vec::new();
        for (number, rule) in (0_u16..).zip(rules) {
            let Wake::Digits(least) = rule.wake else {
                continue;
            };
            if rule.view != view {
                continue;
            }
            numbers.push(RuleIndex(number));
            patterns.push(&rule.pattern.hir);
            let of_rule = Shape::all(&rule.pattern.hir);
            if !of_rule.iter().all(Shape::has_digits) {
                densities.push((least, rule.pattern.longest));
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
            starts: Starts::of(shapes, &densities),
        }))
    }

    /// Adds a hit for every place at which a match of one of the rules that are `active` does begin. `places` are those
    /// behind the beginning of `ground`.
    pub(crate) fn collect(
        &self,
        active: &RuleSet,
        ground: &MatchRange<'_>,
        places: &Places,
        residue: &mut Residue,
        hits: &mut Vec<Hit>,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        let MatchRange { bytes, from, to, .. } = *ground;
        let has_digits = places.digits.iter().any(|digits| *digits != 0);
        if !has_digits || !self.rules.iter().any(|rule| active.contains(*rule)) {
            return Ok(());
        }
        let Residue {
            cache,
            sums,
            candidates,
        } = residue;
        self.starts.fill(places, &bytes[from..], sums, candidates);
        let cache = cache.get_or_insert_with(|| self.automaton.cache());
        let mut left = (bytes.len() - from).saturating_mul(MOST_READ);
        for (word, first) in candidates.iter().zip((from..to).step_by(u64::BITS as usize)) {
            let mut bits = *word;
            while bits != 0 {
                let place = first + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if place >= to {
                    break;
                }
                if !self.automaton.can_begin(bytes, place) {
                    continue;
                }
                let length = self.walk(active, cache, ground, place, hits)?;
                clock.passed(length)?;
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

    /// Adds a hit for every rule of which a match begins at `place`. Returns how many bytes it read.
    fn walk(
        &self,
        active: &RuleSet,
        cache: &mut Cache,
        ground: &MatchRange<'_>,
        place: usize,
        hits: &mut Vec<Hit>,
    ) -> Result<usize, Fault> {
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
            Walk::Dead(length) => Ok(length),
            Walk::Alive(state) => {
                self.automaton.end(cache, state, &mut found)?;
                Ok(ground.bytes.len() - place)
            }
        }
    }
}
