use crate::{FeatureTest, ResponseMeasurements, TokenDistribution};

/// The data of a window of responses that is kept for comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseWindow {
    pub(crate) response_count: usize,
    /// Comparable entropies, in bits per token.
    pub(crate) entropies: Vec<f32>,
    /// Lengths, in tokens.
    pub(crate) lengths: Vec<f32>,
    /// Shares of repeated groups of words.
    pub(crate) repetitions: Vec<f32>,
    /// Distributions of first tokens.
    pub(crate) first_tokens: Vec<TokenDistribution>,
    pub(crate) refusals: usize,
    /// Number of responses that ended at the length limit.
    pub(crate) length_limited: usize,
}

impl ResponseWindow {
    pub(crate) fn add(&mut self, measures: &ResponseMeasurements) {
        self.response_count += 1;
        if let Some(entropy) = measures.entropy.and_then(|entropy| entropy.comparable_min) {
            self.entropies.push(entropy as f32);
        }
        if let Some(tokens) = measures.tokens {
            self.lengths.push(tokens as f32);
        }
        if let Some(repetition) = measures.repetition {
            self.repetitions.push(repetition.repeated_share as f32);
        }
        if let Some(opening) = &measures.first_token {
            self.first_tokens.push(opening.clone());
        }
        self.refusals += usize::from(measures.refusal.is_some());
        self.length_limited += usize::from(measures.hit_length_limit);
    }
}

/// The report for a full window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowReport {
    /// Its number among the windows of its pair, from 1.
    pub number: u64,
    /// Number of responses.
    pub response_count: usize,
    /// Number of responses with comparable entropies.
    pub entropy_count: usize,
    /// Mean comparable entropy, in bits per token.
    pub mean_entropy: Option<f64>,
    /// Mean length, in tokens.
    pub mean_length: Option<f64>,
    /// Mean share of repeated groups of words, over the responses that are long enough.
    pub mean_repetition: Option<f64>,
    /// Share of refusals.
    pub refusal_share: f64,
    /// Share of responses that ended at the length limit.
    pub length_limited_share: f64,
    /// The tests against the reference; empty if the window became the reference.
    pub tests: Vec<FeatureTest>,
}

impl WindowReport {
    pub(crate) fn from_window(window: &ResponseWindow, number: u64, tests: Vec<FeatureTest>) -> Self {
        let share = |count: usize| count as f64 / window.response_count.max(1) as f64;
        WindowReport {
            number,
            response_count: window.response_count,
            entropy_count: window.entropies.len(),
            mean_entropy: mean(&window.entropies),
            mean_length: mean(&window.lengths),
            mean_repetition: mean(&window.repetitions),
            refusal_share: share(window.refusals),
            length_limited_share: share(window.length_limited),
            tests,
        }
    }

    /// Returns the tests that found a difference.
    pub fn findings(&self) -> impl Iterator<Item = &FeatureTest> {
        self.tests.iter().filter(|test| test.is_significant)
    }
}

fn mean(values: &[f32]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
    (!values.is_empty()).then(|| sum / values.len() as f64)
}
