//! Rules that digits wake, tried together: a table of numbers wakes them nearly everywhere, and each of them alone would
//! read all of it.

use std::cmp::Reverse;

use regex_automata::hybrid::dfa::Cache;

use crate::automaton::{Automaton, Walk};
use crate::budget::Clock;
use crate::digits;
use crate::engine::Rule;
use crate::rule_set::RuleSet;
use crate::wake::Wake;
use crate::window::Ground;
use crate::woken::Hit;
use crate::{Fault, PolicyError, RuleIndex, View};

/// What the walks over a text may read, in bytes for each of its own. Beyond it the rules search for themselves.
const MOST_READ: usize = 8;

/// One automaton for the rules of a view that digits wake.
pub(crate) struct Sieve {
    automaton: Automaton,
    /// The rules, by the numbers of their patterns.
    rules: Vec<RuleIndex>,
    /// What a match of one of them holds: (digits at least, bytes at most), none of which another one covers.
    densities: Vec<(usize, usize)>,
    least: usize,
}

/// Buffers of a sieve.
#[derive(Default)]
pub(crate) struct Residue {
    cache: Option<Cache>,
    digits: Vec<u32>,
    /// First and last place at which a match can begin.
    stretches: Vec<(usize, usize)>,
}

impl Sieve {
    /// None, if digits wake no rule of this view.
    pub(crate) fn build(rules: &[Rule], view: View) -> Result<Option<Self>, PolicyError> {
        let (mut numbers, mut patterns, mut densities) = (Vec::new(), Vec::new(), Vec::new());
        for (number, rule) in (0_u16..).zip(rules) {
            if let Wake::Digits(least) = rule.wake
                && rule.view == view
            {
                numbers.push(RuleIndex(number));
                patterns.push(&rule.pattern.hir);
                densities.push((least, rule.pattern.longest));
            }
        }
        let Some(least) = densities.iter().map(|(least, _)| *least).min() else {
            return Ok(None);
        };
        Ok(Some(Self {
            automaton: Automaton::build(&patterns)?,
            rules: numbers,
            densities: uncovered(densities),
            least,
        }))
    }

    /// Adds a hit for every place at which a match of one of the rules that are `active` does begin.
    pub(crate) fn collect(
        &self,
        active: &RuleSet,
        ground: &Ground<'_>,
        residue: &mut Residue,
        hits: &mut Vec<Hit>,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        let Ground { bytes, from, to, .. } = *ground;
        let text = &bytes[from..];
        if digits::count(text) < self.least {
            return Ok(());
        }
        let Residue {
            cache,
            digits,
            stretches,
        } = residue;
        digits::fill(digits, text);
        stretches.clear();
        for (least, longest) in &self.densities {
            digits::dense(digits, *least, *longest, |low, high| stretches.push((low, high)));
        }
        stretches.sort_unstable();
        let cache = cache.get_or_insert_with(|| self.automaton.cache());
        let (mut place, mut left) = (from, text.len().saturating_mul(MOST_READ));
        for (low, high) in &*stretches {
            place = place.max(from + low);
            let end = to.min(from + high + 1);
            while place < end {
                if !self.automaton.can_begin(bytes, place) {
                    place += 1;
                    continue;
                }
                let length = self.walk(active, cache, ground, place, hits)?;
                clock.passed(length)?;
                place += 1;
                let Some(rest) = left.checked_sub(length) else {
                    let rules = self.rules.iter().filter(|rule| active.contains(**rule));
                    hits.extend(rules.map(|rule| Hit::new(*rule, place - from, usize::MAX)));
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
        ground: &Ground<'_>,
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
        match self.automaton.walk(cache, ground.bytes, place, &mut found)? {
            Walk::Dead(length) => Ok(length),
            Walk::Alive(state) => {
                self.automaton.end(cache, state, &mut found)?;
                Ok(ground.bytes.len() - place)
            }
        }
    }
}

/// Those of `densities` that are not found wherever another one is.
fn uncovered(mut densities: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    // Fewest digits first: whatever holds more of them within as few bytes holds those, too.
    densities.sort_unstable_by_key(|(least, longest)| (*least, Reverse(*longest)));
    let mut reach = 0;
    densities.retain(|(_, longest)| {
        let wider = *longest > reach;
        reach = reach.max(*longest);
        wider
    });
    densities
}
