//! The section `analysis`: analysis of responses.

use proofgate_analysis::AnalysisSettings;
use proofgate_base::Error;
use serde::Deserialize;

/// The settings for the analysis of responses.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnalysisConfig {
    /// The fraction of responses that are analysed, 0 to 1.
    pub sample: f64,
    /// Tenants whose responses are analysed; empty: all tenants.
    pub tenants: Vec<String>,
    /// Models whose responses are analysed; empty: all models.
    pub models: Vec<String>,
    /// Number of responses in a window.
    pub window: usize,
    /// Maximum expected number of false drift findings per window.
    pub false_alarms: f64,
    /// Number of alternatives of each token from which entropies are computed.
    pub top_logprobs: usize,
    /// Vocabulary size of the models, in tokens; `None`: not known.
    pub vocabulary: Option<u64>,
    /// The fraction of repeated n-grams at which a response is flagged.
    pub repetition: f64,
    /// Maximum bytes of a response that are copied.
    pub max_answer_bytes: usize,
    /// Maximum bytes of all copies of responses together.
    pub max_copy_bytes: usize,
    /// Maximum number of tracked pairs of tenant and model.
    pub max_pairs: usize,
}

/// Maximum number of responses in all windows together; each takes about 300 bytes.
const MAX_RETAINED_ANSWERS: usize = 400_000;

impl AnalysisConfig {
    /// Checks that all numbers are within their bounds.
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
            ("maxAnswerBytes", self.max_answer_bytes > 0),
            ("maxPairs", (1..=4096).contains(&self.max_pairs)),
            (
                "window times maxPairs",
                self.window.saturating_mul(self.max_pairs) <= MAX_RETAINED_ANSWERS,
            ),
        ];
        match bounds.into_iter().find(|(_, is_within)| !is_within) {
            Some((name, _)) => Err(Error::Config(format!("analysis.{name} is out of range"))),
            None => Ok(()),
        }
    }

    /// Returns the settings in the form that the analysis needs.
    pub fn settings(&self) -> AnalysisSettings {
        AnalysisSettings {
            window_size: self.window,
            max_false_alarm_rate: self.false_alarms,
            max_pairs: self.max_pairs,
            entropy_depth: self.top_logprobs,
            vocabulary_size: self.vocabulary,
            repetition_threshold: self.repetition,
        }
    }
}
