//! Where a match can begin that the text so far does not decide: what a stream has to hold back.

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;

use crate::begins::Begins;
use crate::budget::Clock;
use crate::{Fault, PolicyError};

const CACHE_BYTES: usize = 4 << 20;

/// One automaton for all rules of a direction and view. Run from a place, it dies when no rule's match that begins there
/// can depend on what follows.
pub(crate) struct Undecided {
    automaton: Option<Automaton>,
}

struct Automaton {
    dfa: DFA,
    begins: Begins,
}

impl Undecided {
    pub(crate) fn build<'h>(patterns: impl Iterator<Item = &'h Hir>) -> Result<Self, PolicyError> {
        let patterns: Vec<&Hir> = patterns.collect();
        if patterns.is_empty() {
            return Ok(Self { automaton: None });
        }
        Automaton::build(&patterns)
            .map(|automaton| Self {
                automaton: Some(automaton),
            })
            .map_err(PolicyError::Internal)
    }

    pub(crate) fn cache(&self) -> Option<Cache> {
        self.automaton
            .as_ref()
            .map(|automaton| automaton.dfa.create_cache())
    }

    /// The first place of `text` at or behind `from` that is undecided at the end of `text`; the end if there is none.
    pub(crate) fn first(
        &self,
        cache: &mut Option<Cache>,
        text: &[u8],
        from: usize,
        clock: &mut Clock<'_>,
    ) -> Result<usize, Fault> {
        let (Some(automaton), Some(cache)) = (&self.automaton, cache) else {
            return Ok(text.len());
        };
        for place in from..text.len() {
            if !automaton.begins.can_begin(text, place) {
                continue;
            }
            let survived = automaton
                .run(cache, text, place)
                .map_err(|_| Fault::Internal("automaton"))?;
            let Some(length) = survived else { return Ok(place) };
            clock.passed(length)?;
        }
        Ok(text.len())
    }
}

impl Automaton {
    fn build(patterns: &[&Hir]) -> Result<Self, String> {
        let dfa = every_match(patterns, CACHE_BYTES)?;
        let begins = Begins::of(&dfa, &mut dfa.create_cache())?;
        Ok(Self { dfa, begins })
    }

    /// How many bytes of `text` from `place` on kill the automaton; none if it is alive at the end.
    fn run(&self, cache: &mut Cache, text: &[u8], place: usize) -> Result<Option<usize>, ()> {
        let input = Input::new(text).range(place..).anchored(Anchored::Yes);
        let mut state = self.dfa.start_state_forward(cache, &input).map_err(|_| ())?;
        for (index, byte) in text[place..].iter().enumerate() {
            state = self.dfa.next_state(cache, state, *byte).map_err(|_| ())?;
            if state.is_tagged() && state.is_dead() {
                return Ok(Some(index + 1));
            }
        }
        Ok(None)
    }
}

/// The automaton of all matches of `patterns`, and not only of the preferred ones.
pub(crate) fn every_match(patterns: &[&Hir], cache_bytes: usize) -> Result<DFA, String> {
    let nfa = NFA::compiler()
        .configure(NFA::config().utf8(false))
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
