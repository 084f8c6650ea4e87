//! Which answers are analysed.

use proofgate_analysis::AnalysisSettings;
use proofgate_base::Error;
use serde::Deserialize;

/// Which answers are analysed, and how.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnalysisConfig {
    /// The share of answers that are analysed, 0 to 1.
    pub sample: f64,
    /// Whose; all tenants' when it is empty.
    pub tenants: Vec<String>,
    /// Of which models; of all when it is empty.
    pub models: Vec<String>,
    /// Answers in a window.
    pub window: usize,
    /// The most false findings of drift for each window.
    pub false_alarms: f64,
    /// Alternatives of a token that entropies are compared by.
    pub top_logprobs: usize,
    /// Tokens that the models know, where that is known.
    pub vocabulary: Option<u64>,
    /// From which share of repeated groups of words on an answer is flagged.
    pub repetition: f64,
    /// Bytes of an answer that are copied, at most.
    #[serde(rename = "maxAnswerBytes")]
    pub answer_bytes: usize,
    /// Bytes of all copies together, at most.
    #[serde(rename = "maxCopyBytes")]
    pub copy_bytes: usize,
    /// Pairs of tenant and model that are followed, at most.
    #[serde(rename = "maxPairs")]
    pub pairs: usize,
}

/// Answers of all windows whose numbers are kept, some 300 bytes each, at most.
const MAX_RETAINED_ANSWERS: usize = 400_000;

impl AnalysisConfig {
    /// # Errors
    /// [`Error::Config`] with the first number that is out of its bounds.
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
            max_false_alarms: self.false_alarms,
            max_pairs: self.pairs,
            entropy_depth: self.top_logprobs,
            vocabulary_size: self.vocabulary,
            repetition_threshold: self.repetition,
        }
    }
}
