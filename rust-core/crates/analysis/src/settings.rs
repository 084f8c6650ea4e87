/// How answers are analysed.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalysisSettings {
    /// Answers in a window.
    pub window_size: usize,
    /// The most false findings of drift for each window that is compared, 0 to 1; see [`AnalysisSettings::significance_level`].
    pub max_false_alarms: f64,
    /// Pairs of tenant and model that are followed, at most: beyond that the one that was least recently seen is forgotten.
    pub max_pairs: usize,
    /// Alternatives of a token that entropies are compared by, most likely first; at most [`AnalysisSettings::MAX_ENTROPY_DEPTH`].
    pub entropy_depth: usize,
    /// Tokens that the models know, where that is known: it closes the upper bound of entropies.
    pub vocabulary_size: Option<u64>,
    /// From which share of repeated groups of words on an answer is flagged, 0 to 1.
    pub repetition_threshold: f64,
}

impl AnalysisSettings {
    /// The most alternatives of a token that are kept.
    pub const MAX_ENTROPY_DEPTH: usize = 8;

    /// The level of the tests of one window together, Bonferroni's over its features. Every window is compared with a
    /// reference that was taken before, so each of them errs with at most this probability; as a finding begins with a
    /// new reference, a pair without a change goes on for `1 / (2 level)` windows at least, on average. Half of
    /// `max_false_alarms` therefore keeps what that promises, whatever the tests of one reference have in common.
    #[must_use]
    pub fn significance_level(&self) -> f64 {
        self.max_false_alarms / 2.0
    }
}

impl Default for AnalysisSettings {
    fn default() -> Self {
        AnalysisSettings {
            window_size: 200,
            max_false_alarms: 0.001,
            max_pairs: 128,
            entropy_depth: 5,
            vocabulary_size: None,
            repetition_threshold: 0.5,
        }
    }
}
