//! Buffers that evaluations reuse.

use regex_automata::{hybrid, meta};

use crate::Engine;
use crate::fold::Folded;
use crate::woken::Hit;

/// Working memory of one thread. It grows to what the texts need, by at most some hundred kilobytes apart from the lazily
/// built automata of the regexes, which are bounded too, and is used for one engine at a time: after a change of the
/// engine it starts anew.
#[derive(Default)]
pub struct Scratch {
    engine: u64,
    pub(crate) regexes: Vec<Option<meta::Cache>>,
    pub(crate) undecided: [Option<hybrid::dfa::Cache>; 4],
    pub(crate) folded: Folded,
    pub(crate) plain: Vec<u8>,
    pub(crate) hits: Vec<Hit>,
    pub(crate) digits: Vec<usize>,
    /// For each level of decoding, the decoded bytes.
    pub(crate) decoded: [Vec<u8>; 2],
}

impl Scratch {
    /// Empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn prepare(&mut self, engine: &Engine) {
        if self.engine == engine.id {
            return;
        }
        *self = Self::default();
        self.engine = engine.id;
        self.regexes.resize_with(engine.rules.len(), || None);
    }
}
