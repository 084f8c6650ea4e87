//! Positions where the text so far does not decide whether a match begins: the text that a stream
//! has to hold back.

use regex_automata::hybrid::dfa::Cache;
use regex_syntax::hir::Hir;

use crate::automaton::{Automaton, WalkOutcome};
use crate::budget::Clock;
use crate::{EvaluationError, PolicyError};

/// One automaton for all rules of a direction and view. Run from a position, it reaches a dead state when no match of a rule
/// that begins there can depend on the following text.
pub(crate) struct UndecidedAutomaton {
    automaton: Option<Automaton>,
}

impl UndecidedAutomaton {
    pub(crate) fn build<'h>(patterns: impl Iterator<Item = &'h Hir>) -> Result<Self, PolicyError> {
        let patterns: Vec<&Hir> = patterns.collect();
        let automaton = (!patterns.is_empty()).then(|| Automaton::build(&patterns));
        Ok(Self {
            automaton: automaton.transpose()?,
        })
    }

    /// Returns the first position of `text` at or after `from` that is undecided at the end of `text`; the end if there is
    /// none.
    pub(crate) fn first_undecided(
        &self,
        cache: &mut Option<Cache>,
        text: &[u8],
        from: usize,
        clock: &mut Clock<'_>,
    ) -> Result<usize, EvaluationError> {
        self.search(cache, text, from, clock, false)
    }

    /// Returns the first position of `text` at or after `from` where a match is complete or undecided; the end if there is
    /// none.
    pub(crate) fn first_undecided_or_complete(
        &self,
        cache: &mut Option<Cache>,
        text: &[u8],
        from: usize,
        clock: &mut Clock<'_>,
    ) -> Result<usize, EvaluationError> {
        self.search(cache, text, from, clock, true)
    }

    fn search(
        &self,
        cache: &mut Option<Cache>,
        text: &[u8],
        from: usize,
        clock: &mut Clock<'_>,
        or_complete: bool,
    ) -> Result<usize, EvaluationError> {
        let Some(automaton) = &self.automaton else {
            return Ok(text.len());
        };
        let cache = cache.get_or_insert_with(|| automaton.create_cache());
        for place in (from..text.len()).filter(|place| automaton.can_start_at(text, *place)) {
            let mut is_complete = false;
            match automaton.walk(cache, text, place, |_, _| is_complete = true)? {
                WalkOutcome::Dead(length) if !(or_complete && is_complete) => clock.charge_pass(length)?,
                _ => return Ok(place),
            }
        }
        Ok(text.len())
    }
}
