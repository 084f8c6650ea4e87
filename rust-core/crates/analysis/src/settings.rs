/// How answers are analysed.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Answers in a window.
    pub window: usize,
    /// The most false findings of drift for each window that is compared, 0 to 1; see [`Settings::level`].
    pub false_alarms: f64,
    /// Pairs of tenant and model that are followed, at most: beyond that the one that was least recently seen is forgotten.
    pub pairs: usize,
    /// Alternatives of a token that entropies are compared by, most likely first; at most [`Settings::DEEPEST`].
    pub depth: usize,
    /// Tokens that the models know, where that is known: it closes the upper bound of entropies.
    pub vocabulary: Option<u64>,
    /// From which share of repeated groups of words on an answer is flagged, 0 to 1.
    pub repetition: f64,
}

impl Settings {
    /// The most alternatives of a token that are kept.
    pub const DEEPEST: usize = 8;

    /// The level of the tests of one window together, Bonferroni's over its features. Every window is compared with a
    /// reference that was taken before, so each of them errs with at most this probability; as a finding begins with a
    /// new reference, a pair without a change goes on for `1 / (2 level)` windows at least, on average. Half of
    /// `false_alarms` therefore keeps what that promises, whatever the tests of one reference have in common.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.false_alarms / 2.0
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            window: 200,
            false_alarms: 0.001,
            pairs: 128,
            depth: 5,
            vocabulary: None,
            repetition: 0.5,
        }
    }
}
