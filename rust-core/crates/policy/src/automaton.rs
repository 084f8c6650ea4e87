//! One automaton for many rules, run from a position at which a match may begin.

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{NFA, WhichCaptures};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;

use crate::start_bytes::StartBytes;
use crate::{EvaluationError, PolicyError};

const CACHE_BYTES: usize = 4 << 20;

/// An automaton that reports all matches of some patterns, not only the preferred ones. It is built lazily, in a cache of
/// bounded size.
pub(crate) struct Automaton {
    dfa: DFA,
    start_bytes: StartBytes,
}

/// The outcome of a walk.
pub(crate) enum WalkOutcome {
    /// The dead state, reached after this many bytes: no match depends on later bytes.
    Dead(usize),
    /// The end of the text was reached in this state.
    Alive(LazyStateID),
}

impl WalkOutcome {
    /// Returns how many of the `left` bytes of the text were read.
    pub(crate) fn bytes_read(&self, left: usize) -> usize {
        match self {
            WalkOutcome::Dead(length) => *length,
            WalkOutcome::Alive(_) => left,
        }
    }
}

impl Automaton {
    /// Builds the automaton of at least one pattern; patterns are numbered in this order.
    pub(crate) fn build(patterns: &[&Hir]) -> Result<Self, PolicyError> {
        let build = || {
            let dfa = all_matches_dfa(patterns, CACHE_BYTES)?;
            let begins = StartBytes::from_dfa(&dfa, &mut dfa.create_cache())?;
            Ok(Self {
                dfa,
                start_bytes: begins,
            })
        };
        build().map_err(PolicyError::Internal)
    }

    pub(crate) fn create_cache(&self) -> Cache {
        self.dfa.create_cache()
    }

    /// Whether a match can begin at `place` of `text`, judging by the byte at `place` and the byte
    /// before it.
    pub(crate) fn can_start_at(&self, text: &[u8], place: usize) -> bool {
        self.start_bytes.can_start_at(text, place)
    }

    /// Reads `text` from `place`. Calls `found` with the number of each pattern that has a complete
    /// match from `place`, and the end of the match, possibly more than once. A match that ends at
    /// the end of `text` is not reported.
    pub(crate) fn walk(
        &self,
        cache: &mut Cache,
        text: &[u8],
        place: usize,
        mut found: impl FnMut(usize, usize),
    ) -> Result<WalkOutcome, EvaluationError> {
        let input = Input::new(text).range(place..).anchored(Anchored::Yes);
        let mut state = self.dfa.start_state_forward(cache, &input).map_err(|_| FAULT)?;
        for (index, byte) in text[place..].iter().enumerate() {
            state = self.dfa.next_state(cache, state, *byte).map_err(|_| FAULT)?;
            if !state.is_tagged() {
                continue;
            }
            if state.is_dead() {
                return Ok(WalkOutcome::Dead(index + 1));
            }
            // The automaton reports a match one byte late, because of word boundaries.
            self.report_matches(cache, state, |pattern| found(pattern, place + index));
        }
        Ok(WalkOutcome::Alive(state))
    }

    /// Calls `found` with the number of each pattern that has a match ending at the end of the text, where `state` was
    /// reached.
    pub(crate) fn finish(
        &self,
        cache: &mut Cache,
        state: LazyStateID,
        found: impl FnMut(usize),
    ) -> Result<(), EvaluationError> {
        let state = self.dfa.next_eoi_state(cache, state).map_err(|_| FAULT)?;
        self.report_matches(cache, state, found);
        Ok(())
    }

    fn report_matches(&self, cache: &Cache, state: LazyStateID, mut found: impl FnMut(usize)) {
        if state.is_match() {
            for index in 0..self.dfa.match_len(cache, state) {
                found(self.dfa.match_pattern(cache, state, index).as_usize());
            }
        }
    }
}

pub(crate) const FAULT: EvaluationError = EvaluationError::Internal("automaton");

/// Builds an automaton that reports all matches of `patterns`.
pub(crate) fn all_matches_dfa(patterns: &[&Hir], cache_bytes: usize) -> Result<DFA, String> {
    let nfa = NFA::compiler()
        .configure(NFA::config().utf8(false).which_captures(WhichCaptures::None))
        .build_many_from_hir(patterns)
        .map_err(|error| error.to_string())?;
    let config = DFA::config()
        .match_kind(MatchKind::All)
        .cache_capacity(cache_bytes)
        .skip_cache_capacity_check(true);
    DFA::builder()
        .configure(config)
        .build_from_nfa(nfa)
        .map_err(|error| error.to_string())
}
