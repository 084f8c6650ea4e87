//! Buffers that evaluations reuse.

use regex_automata::hybrid;

use crate::Engine;
use crate::digit_prefilter::DigitPrefilterBuffers;
use crate::digits::PositionBitmap;
use crate::fold::FoldedText;
use crate::hit::Hit;
use crate::hold::{HoldDetector, HoldDetectorCaches};
use crate::search::PatternCaches;
use crate::trigger::MAX_NEEDLES;

/// Maximum number of profiles whose hold detector caches are kept.
const MAX_HOLD_CACHES: usize = 4;

/// Working memory of the successive evaluations of one engine. It grows with the texts, by at most
/// some hundred kilobytes apart from the lazily built automata of the regexes, which are bounded
/// too. Use with another engine resets it, and the automata have to be rebuilt.
#[derive(Default)]
pub struct Scratch {
    engine_id: u64,
    engine_switches: u64,
    pub(crate) regexes: Vec<PatternCaches>,
    pub(crate) anchors: Vec<[Option<hybrid::dfa::Cache>; MAX_NEEDLES]>,
    pub(crate) undecided_caches: [Option<hybrid::dfa::Cache>; 4],
    pub(crate) positions: PositionBitmap,
    pub(crate) digit_prefilter_buffers: Vec<DigitPrefilterBuffers>,
    pub(crate) hold_caches: Vec<(u64, HoldDetectorCaches)>,
    pub(crate) folded: FoldedText,
    pub(crate) plain: Vec<u8>,
    pub(crate) hits: Vec<Hit>,
    /// The decoded bytes for each level of decoding.
    pub(crate) decoded: [Vec<u8>; 2],
}

impl Scratch {
    /// Creates empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how often it was set up for another engine; 1 if it is used with only one engine.
    #[must_use]
    pub fn engine_switches(&self) -> u64 {
        self.engine_switches
    }

    /// Returns the caches for `hold` from `holds`, which contains the caches of the most recently
    /// used profiles.
    pub(crate) fn caches_for<'c>(
        holds: &'c mut Vec<(u64, HoldDetectorCaches)>,
        hold: &HoldDetector,
    ) -> &'c mut HoldDetectorCaches {
        let known = holds.iter().position(|(id, _)| *id == hold.id);
        let place = known.unwrap_or_else(|| {
            holds.truncate(MAX_HOLD_CACHES - 1);
            holds.push((hold.id, HoldDetectorCaches::default()));
            holds.len() - 1
        });
        holds.swap(0, place);
        &mut holds[0].1
    }

    pub(crate) fn prepare(&mut self, engine: &Engine) {
        if self.engine_id == engine.id {
            return;
        }
        *self = Self {
            engine_id: engine.id,
            engine_switches: self.engine_switches + 1,
            ..Self::default()
        };
        self.regexes
            .resize_with(engine.rules.len(), PatternCaches::default);
        self.anchors.resize_with(engine.rules.len(), Default::default);
        self.digit_prefilter_buffers
            .resize_with(engine.digit_prefilters.len(), DigitPrefilterBuffers::default);
    }
}
