//! Positions in a streamed text where something that a rule replaces or denies can begin: everything before them can be
//! released.
//!
//! Unlike [undecided](crate::undecided) positions, these depend on the tenant's actions for the rules, and on where in a
//! match the replaced value begins.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use regex_automata::hybrid::dfa::Cache;
use regex_syntax::hir::{Hir, HirKind};

use crate::automaton::{Automaton, WalkOutcome};
use crate::budget::Clock;
use crate::pattern::{VALUE_GROUP, has_value_group};
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::undecided::UndecidedAutomaton;
use crate::{EvaluationError, PolicyError, RuleIndex, View};

/// Detects where some rules can begin to match.
pub(crate) struct HoldDetector {
    /// A unique id.
    pub(crate) id: u64,
    /// One detector for each view: `Text`, `Folded`.
    views: [StartDetector; 2],
}

impl fmt::Debug for HoldDetector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Hold")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The part of a streamed text that is held back.
#[derive(Clone, Copy)]
pub(crate) enum HoldMode<'a> {
    /// All undecided text.
    All,
    /// Text in which one of these rules can begin to match.
    MatchStarts(&'a HoldDetector),
    Off,
}

/// Caches that [`HoldDetector`] reuses between texts.
#[derive(Default)]
pub(crate) struct HoldDetectorCaches([StartDetectorCaches; 2]);

#[derive(Default)]
struct StartDetectorCaches {
    matches: Option<Cache>,
    before_value: Option<Cache>,
    values: Option<Cache>,
    starts: Vec<usize>,
}

struct StartDetector {
    /// Matches that are replaced as a whole.
    matches: UndecidedAutomaton,
    /// The part before a value, and the value with the part after it.
    value_automata: Option<(Automaton, Automaton)>,
}

impl HoldDetector {
    /// Builds the detector for those of `rules` that are `acting`.
    pub(crate) fn build(rules: &[Rule], acting: &RuleSet) -> Result<Self, PolicyError> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let lookout = |view: View| {
            let acting = (0_u16..)
                .zip(rules)
                .filter(|(number, rule)| rule.view == view && acting.contains(RuleIndex(*number)));
            StartDetector::build(acting.map(|(_, rule)| &rule.pattern.hir))
        };
        Ok(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            views: [lookout(View::Text)?, lookout(View::Folded)?],
        })
    }

    /// Returns the first position of `text`, a copy for this view, at or after `from`, where a match begins or can begin
    /// depending on the following text; the end if there is none. `from` is the first position that is undecided for any
    /// rule: matches after it are not reported yet.
    pub(crate) fn first_start(
        &self,
        view: View,
        caches: &mut HoldDetectorCaches,
        text: &[u8],
        from: usize,
        clock: &mut Clock<'_>,
    ) -> Result<usize, EvaluationError> {
        let number = usize::from(view == View::Folded);
        self.views[number].first_start(&mut caches.0[number], text, from, clock)
    }
}

impl StartDetector {
    fn build<'h>(patterns: impl Iterator<Item = &'h Hir>) -> Result<Self, PolicyError> {
        let (mut whole, mut before, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (first, rest) in patterns.flat_map(split_at_value) {
            match first {
                Some(first) if first.properties().minimum_len() > Some(0) => {
                    before.push(first);
                    values.push(rest);
                }
                first => whole.push(Hir::concat(first.into_iter().chain([rest]).collect())),
            }
        }
        let values = if before.is_empty() {
            None
        } else {
            let build = |patterns: &[Hir]| Automaton::build(&patterns.iter().collect::<Vec<_>>());
            Some((build(&before)?, build(&values)?))
        };
        Ok(Self {
            matches: UndecidedAutomaton::build(whole.iter())?,
            value_automata: values,
        })
    }

    fn first_start(
        &self,
        caches: &mut StartDetectorCaches,
        text: &[u8],
        from: usize,
        clock: &mut Clock<'_>,
    ) -> Result<usize, EvaluationError> {
        let mut first = self
            .matches
            .first_undecided_or_complete(&mut caches.matches, text, from, clock)?;
        let Some((before, values)) = &self.value_automata else {
            return Ok(first);
        };
        let before_cache = caches.before_value.get_or_insert_with(|| before.create_cache());
        let values_cache = caches.values.get_or_insert_with(|| values.create_cache());
        let begins = &mut caches.starts;
        let mut place = from;
        while place < first {
            if before.can_start_at(text, place) {
                begins.clear();
                let walk = before.walk(before_cache, text, place, |_, end| begins.push(end))?;
                clock.charge_pass(walk.bytes_read(text.len() - place))?;
                begins.dedup();
                for begin in begins.iter().filter(|begin| **begin < text.len()) {
                    let mut is_complete = false;
                    let walk = values.walk(values_cache, text, *begin, |_, _| is_complete = true)?;
                    clock.charge_pass(walk.bytes_read(text.len() - begin))?;
                    if is_complete || matches!(walk, WalkOutcome::Alive(_)) {
                        first = first.min(*begin);
                    }
                }
            }
            place += 1;
        }
        Ok(first)
    }
}

/// Splits `hir` into its alternatives: the part before the value, if there is one, and the rest.
fn split_at_value(hir: &Hir) -> Vec<(Option<Hir>, Hir)> {
    match hir.kind() {
        HirKind::Capture(group) if group.name.as_deref() == Some(VALUE_GROUP) => {
            vec![(Some(Hir::empty()), hir.clone())]
        }
        HirKind::Alternation(branches) => branches.iter().flat_map(split_at_value).collect(),
        HirKind::Concat(parts) => {
            let Some(at) = parts.iter().position(has_value_group) else {
                return vec![(None, hir.clone())];
            };
            let join = |some: &[Hir], one: Hir, others: &[Hir]| {
                Hir::concat(
                    some.iter()
                        .cloned()
                        .chain([one])
                        .chain(others.iter().cloned())
                        .collect(),
                )
            };
            let (some, others) = (&parts[..at], &parts[at + 1..]);
            let ways = split_at_value(&parts[at]).into_iter();
            ways.map(|(first, rest)| match first {
                Some(first) => (Some(join(some, first, &[])), join(&[], rest, others)),
                None => (None, join(some, rest, others)),
            })
            .collect()
        }
        _ => vec![(None, hir.clone())],
    }
}
