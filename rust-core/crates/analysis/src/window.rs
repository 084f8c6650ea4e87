use crate::{Distribution, Measures, Test};

/// What a window of answers leaves for comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    pub(crate) answers: usize,
    /// Comparable entropies, in bits per token.
    pub(crate) entropies: Vec<f32>,
    /// Lengths, in tokens.
    pub(crate) lengths: Vec<f32>,
    /// Shares of repeated groups of words.
    pub(crate) repetitions: Vec<f32>,
    /// Distributions of first tokens.
    pub(crate) openings: Vec<Distribution>,
    pub(crate) refusals: usize,
    /// Those that ended because they were long enough.
    pub(crate) cuts: usize,
}

impl Window {
    pub(crate) fn take(&mut self, measures: &Measures) {
        self.answers += 1;
        if let Some(entropy) = measures.entropy.and_then(|entropy| entropy.comparable) {
            self.entropies.push(entropy as f32);
        }
        if let Some(tokens) = measures.tokens {
            self.lengths.push(tokens as f32);
        }
        if let Some(repetition) = measures.repetition {
            self.repetitions.push(repetition.share as f32);
        }
        if let Some(opening) = &measures.opening {
            self.openings.push(opening.clone());
        }
        self.refusals += usize::from(measures.refusal.is_some());
        self.cuts += usize::from(measures.cut);
    }
}

/// A window that is full.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowReport {
    /// Which one of its pair's, from 1.
    pub number: u64,
    /// Answers in it.
    pub answers: usize,
    /// Of how many of them entropies can be compared.
    pub with_entropy: usize,
    /// Mean comparable entropy, in bits per token.
    pub entropy: Option<f64>,
    /// Mean length, in tokens.
    pub length: Option<f64>,
    /// Mean share of repeated groups of words, of the answers that are long enough.
    pub repetition: Option<f64>,
    /// Share of refusals.
    pub refusals: f64,
    /// Share of answers that ended because they were long enough.
    pub cuts: f64,
    /// What was tested against the reference; empty when the window became the reference itself.
    pub tests: Vec<Test>,
}

impl WindowReport {
    pub(crate) fn of(window: &Window, number: u64, tests: Vec<Test>) -> Self {
        let share = |count: usize| count as f64 / window.answers.max(1) as f64;
        WindowReport {
            number,
            answers: window.answers,
            with_entropy: window.entropies.len(),
            entropy: mean(&window.entropies),
            length: mean(&window.lengths),
            repetition: mean(&window.repetitions),
            refusals: share(window.refusals),
            cuts: share(window.cuts),
            tests,
        }
    }

    /// The tests that found a difference.
    pub fn findings(&self) -> impl Iterator<Item = &Test> {
        self.tests.iter().filter(|test| test.differs)
    }
}

fn mean(values: &[f32]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
    (!values.is_empty()).then(|| sum / values.len() as f64)
}
