//! Rules that digits wake, tried together: a table of numbers wakes them nearly everywhere, and each of them alone would
//! read all of it.

use std::cmp::Reverse;

use regex_automata::hybrid::dfa::Cache;

use crate::automaton::{Automaton, Walk};
use crate::budget::Clock;
use crate::digits::{self, Places, WORD};
use crate::engine::Rule;
use crate::rule_set::RuleSet;
use crate::shapes::{Kind, Shape};
use crate::wake::Wake;
use crate::window::Ground;
use crate::woken::Hit;
use crate::{Fault, PolicyError, RuleIndex, View};

/// What the walks over a text may read, in bytes for each of its own. Beyond it the rules search for themselves.
const MOST_READ: usize = 8;

/// One automaton for the rules of a view that digits wake.
pub(crate) struct Sieve {
    pub(crate) view: View,
    automaton: Automaton,
    /// The rules, by the numbers of their patterns.
    rules: Vec<RuleIndex>,
    /// Where digits stand in their matches, as far as that is known.
    shapes: Vec<Shape>,
    loose: Option<Loose>,
}

/// Rules of which matches can begin with other things than digits stand in.
struct Loose {
    /// What a match of one of them holds: (digits at least, bytes at most), none of which another one covers.
    densities: Vec<(usize, usize)>,
    /// For the first byte of a match and the second one: whether there is such a match,
    pairs: Box<[[bool; 256]; 256]>,
    /// and whether all of them begin with a word.
    at_word: bool,
}

/// Buffers of a sieve.
#[derive(Default)]
pub(crate) struct Residue {
    cache: Option<Cache>,
    digits: Vec<u32>,
    /// Where a match can begin, as bits.
    candidates: Vec<u64>,
    /// First and last place at which a match can begin.
    stretches: Vec<(usize, usize)>,
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
        let (mut shapes, mut others) = (Vec::new(), Vec::new());
        for (number, rule) in (0_u16..).zip(rules) {
            let Wake::Digits(least) = rule.wake else {
                continue;
            };
            if rule.view != view {
                continue;
            }
            numbers.push(RuleIndex(number));
            patterns.push(&rule.pattern.hir);
            let (known, unknown): (Vec<_>, Vec<_>) = Shape::all(&rule.pattern.hir)
                .into_iter()
                .partition(Shape::has_digits);
            shapes.extend(known);
            if !unknown.is_empty() {
                densities.push((least, rule.pattern.longest));
                others.extend(unknown);
            }
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            view,
            automaton: Automaton::build(&patterns)?,
            rules: numbers,
            shapes: Shape::widest(shapes),
            loose: Loose::of(&others, densities),
        }))
    }

    /// Adds a hit for every place at which a match of one of the rules that are `active` does begin. `places` are those
    /// behind the beginning of `ground`.
    pub(crate) fn collect(
        &self,
        active: &RuleSet,
        ground: &Ground<'_>,
        places: &Places,
        residue: &mut Residue,
        hits: &mut Vec<Hit>,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        let Ground { bytes, from, to, .. } = *ground;
        let has_digits = places.digits.iter().any(|digits| *digits != 0);
        if !has_digits || !self.rules.iter().any(|rule| active.contains(*rule)) {
            return Ok(());
        }
        self.candidates(places, &bytes[from..], residue);
        let Residue {
            cache, candidates, ..
        } = residue;
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

    /// Finds where in `text` a match can begin.
    fn candidates(&self, places: &Places, text: &[u8], residue: &mut Residue) {
        let Residue {
            digits,
            candidates,
            stretches,
            ..
        } = residue;
        candidates.clear();
        candidates.extend(
            places
                .digits
                .windows(2)
                .zip(&places.begins)
                .map(|(pair, begins)| {
                    if pair == [0, 0] {
                        return 0;
                    }
                    let both = u128::from(pair[1]) << u64::BITS | u128::from(pair[0]);
                    let fits = |shape: &Shape| {
                        let mut fitting = if shape.at_word { *begins } else { u64::MAX };
                        for (offset, kind) in shape.kinds.iter().enumerate() {
                            match kind {
                                Kind::Digit => fitting &= (both >> offset) as u64,
                                Kind::Other => fitting &= !(both >> offset) as u64,
                                Kind::Any => {}
                            }
                            if fitting == 0 {
                                break;
                            }
                        }
                        fitting
                    };
                    self.shapes.iter().fold(0, |any, shape| any | fits(shape))
                }),
        );
        let Some(loose) = &self.loose else {
            return;
        };
        places.list_digits(digits);
        stretches.clear();
        for (least, longest) in &loose.densities {
            digits::dense(digits, *least, *longest, |low, high| stretches.push((low, high)));
        }
        for (low, high) in &*stretches {
            let high = *high.min(&text.len().saturating_sub(1));
            let words = candidates.iter_mut().zip(&places.begins).enumerate();
            for (word, (candidates, begins)) in words.take(high / WORD + 1).skip(low / WORD) {
                let mut bits = if loose.at_word { *begins } else { u64::MAX };
                while bits != 0 {
                    let place = word * WORD + bits.trailing_zeros() as usize;
                    let pair = [place, place + 1].map(|place| text.get(place).copied().unwrap_or_default());
                    let is_within = place >= *low && place <= high;
                    if is_within && loose.pairs[usize::from(pair[0])][usize::from(pair[1])] {
                        *candidates |= bits & bits.wrapping_neg();
                    }
                    bits &= bits - 1;
                }
            }
        }
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

impl Loose {
    /// None, if there are no such `shapes`.
    fn of(shapes: &[Shape], densities: Vec<(usize, usize)>) -> Option<Self> {
        let mut pairs = Box::new([[false; 256]; 256]);
        for shape in shapes {
            let all = [(0, u8::MAX)].to_vec();
            let [first, second] = [0, 1].map(|number| shape.firsts.get(number).unwrap_or(&all));
            for byte in first.iter().flat_map(|(low, high)| *low..=*high) {
                for (low, high) in second {
                    pairs[usize::from(byte)][usize::from(*low)..=usize::from(*high)].fill(true);
                }
            }
        }
        (!shapes.is_empty()).then(|| Self {
            densities: uncovered(densities),
            pairs,
            at_word: shapes.iter().all(|shape| shape.at_word),
        })
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
