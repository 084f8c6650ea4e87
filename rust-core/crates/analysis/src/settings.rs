/// Settings for the analysis of responses.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalysisSettings {
    /// Number of responses in a window.
    pub window_size: usize,
    /// Maximum rate of false drift findings per compared window, 0 to 1; see [`AnalysisSettings::significance_level`].
    pub max_false_alarm_rate: f64,
    /// Maximum number of monitored pairs of tenant and model; for another pair, the least recently
    /// seen pair is evicted.
    pub max_pairs: usize,
    /// Number of alternatives of a token used for comparing entropies, most likely first; at most
    /// [`AnalysisSettings::MAX_ENTROPY_DEPTH`].
    pub entropy_depth: usize,
    /// Vocabulary size of the models, if known: it limits the upper bound of entropies.
    pub vocabulary_size: Option<u64>,
    /// Minimum share of repeated groups of words for which a response is flagged, 0 to 1.
    pub repetition_threshold: f64,
}

impl AnalysisSettings {
    /// Maximum number of alternatives of a token that are kept.
    pub const MAX_ENTROPY_DEPTH: usize = 8;

    /// Returns the significance level of all tests of one window together (Bonferroni over its
    /// features). Every window is compared with an earlier reference, so each comparison has a
    /// false alarm with at most this probability. A finding starts a new reference, so a pair
    /// without a change runs for at least `1 / (2 level)` windows on average. Half of
    /// `max_false_alarm_rate` therefore keeps the promised rate, however the tests against one
    /// reference depend on each other.
    #[must_use]
    pub fn significance_level(&self) -> f64 {
        self.max_false_alarm_rate / 2.0
    }
}

impl Default for AnalysisSettings {
    fn default() -> Self {
        AnalysisSettings {
            window_size: 200,
            max_false_alarm_rate: 0.001,
            max_pairs: 128,
            entropy_depth: 5,
            vocabulary_size: None,
            repetition_threshold: 0.5,
        }
    }
}
