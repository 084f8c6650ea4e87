//! Buffers that evaluations reuse.

use regex_automata::hybrid;

use crate::Engine;
use crate::digits::Places;
use crate::fold::Folded;
use crate::hit::Hit;
use crate::hold::{Hold, HoldCaches};
use crate::search::PatternCaches;
use crate::sieve::Residue;
use crate::wake::MOST_NEEDLES;

/// Profiles of which it is remembered where in a stream something can begin.
const MOST_HOLDS: usize = 4;

/// Working memory of the evaluations of one engine, one after the other. It grows to what the texts need, by at most some hundred kilobytes apart from the lazily
/// built automata of the regexes, which are bounded too, and belongs to one engine: used for another one, it starts
/// anew, at the price of those automata.
#[derive(Default)]
pub struct Scratch {
    engine: u64,
    starts: u64,
    pub(crate) regexes: Vec<PatternCaches>,
    pub(crate) anchors: Vec<[Option<hybrid::dfa::Cache>; MOST_NEEDLES]>,
    pub(crate) undecided: [Option<hybrid::dfa::Cache>; 4],
    pub(crate) places: Places,
    pub(crate) residues: Vec<Residue>,
    pub(crate) holds: Vec<(u64, HoldCaches)>,
    pub(crate) folded: Folded,
    pub(crate) plain: Vec<u8>,
    pub(crate) hits: Vec<Hit>,
    /// For each level of decoding, the decoded bytes.
    pub(crate) decoded: [Vec<u8>; 2],
}

impl Scratch {
    /// Empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How often it began to serve another engine than before; 1 for one that stays with its engine.
    #[must_use]
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// The memory for `hold`, out of `holds`: that of the profiles that came last.
    pub(crate) fn of_hold<'c>(holds: &'c mut Vec<(u64, HoldCaches)>, hold: &Hold) -> &'c mut HoldCaches {
        let known = holds.iter().position(|(id, _)| *id == hold.id);
        let place = known.unwrap_or_else(|| {
            holds.truncate(MOST_HOLDS - 1);
            holds.push((hold.id, HoldCaches::default()));
            holds.len() - 1
        });
        holds.swap(0, place);
        &mut holds[0].1
    }

    pub(crate) fn prepare(&mut self, engine: &Engine) {
        if self.engine == engine.id {
            return;
        }
        *self = Self {
            engine: engine.id,
            starts: self.starts + 1,
            ..Self::default()
        };
        self.regexes
            .resize_with(engine.rules.len(), PatternCaches::default);
        self.anchors.resize_with(engine.rules.len(), Default::default);
        self.residues.resize_with(engine.sieves.len(), Residue::default);
    }
}
