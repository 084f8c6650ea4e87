//! The section `analysis`: which responses are analysed.

use proofgate_analysis::AnalysisSettings;
use proofgate_base::Error;
use serde::Deserialize;

/// Which responses are analysed, and how.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnalysisConfig {
    /// The fraction of responses that are analysed, 0 to 1.
    pub sample: f64,
    /// Tenants whose responses are analysed; empty means all.
    pub tenants: Vec<String>,
    /// Models whose responses are analysed; empty means all.
    pub models: Vec<String>,
    /// Number of responses in a window.
    pub window: usize,
    /// Maximum expected number of false drift findings for each window.
    pub false_alarms: f64,
    /// Number of alternatives of a token that entropies are computed from.
    pub top_logprobs: usize,
    /// Vocabulary size of the models, in tokens, if known.
    pub vocabulary: Option<u64>,
    /// The fraction of repeated n-grams from which a response is flagged.
    pub repetition: f64,
    /// Maximum bytes of a response that are copied.
    #[serde(rename = "maxAnswerBytes")]
    pub answer_bytes: usize,
    /// Maximum bytes of all copies together.
    #[serde(rename = "maxCopyBytes")]
    pub copy_bytes: usize,
    /// Maximum number of pairs of tenant and model that are tracked.
    #[serde(rename = "maxPairs")]
    pub pairs: usize,
}

/// Maximum number of responses in all windows whose numbers are kept, about 300 bytes each.
const MAX_RETAINED_ANSWERS: usize = 400_000;

impl AnalysisConfig {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`Error::Config`] with the first number that is out of bounds.
    pub fn check(&self) -> Result<(), Error> {
        let bounds = [
            ("sample", (0.0..=1.0).contains(&self.sample)),
            ("window", (30..=10_000).contains(&self.window)),
            ("falseAlarms", (0.0001..=0.1).contains(&self.false_alarms)),
            (
                "topLogprobs",
                (1..=AnalysisSettings::MAX_ENTROPY_DEPTH).contains(&self.top_logprobs),
            ),
            ("repetition", (0.0..=1.0).contains(&self.repetition)),
            ("maxAnswerBytes", self.answer_bytes > 0),
            ("maxPairs", (1..=4096).contains(&self.pairs)),
            (
                "window times maxPairs",
                self.window.saturating_mul(self.pairs) <= MAX_RETAINED_ANSWERS,
            ),
        ];
        match bounds.into_iter().find(|(_, is_within)| !is_within) {
            Some((name, _)) => Err(Error::Config(format!("analysis.{name} is out of range"))),
            None => Ok(()),
        }
    }

    pub fn settings(&self) -> AnalysisSettings {
        AnalysisSettings {
            window_size: self.window,
            max_false_alarm_rate: self.false_alarms,
            max_pairs: self.pairs,
            entropy_depth: self.top_logprobs,
            vocabulary_size: self.vocabulary,
            repetition_threshold: self.repetition,
        }
    }
}
