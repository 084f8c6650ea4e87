//! Simulated models with seeded random responses.
#![allow(dead_code, missing_docs, reason = "shared by tests and an example")]

use proofgate_analysis::{
    Entropy, RefusalSignal, Repetition, ResponseMeasurements, TokenDistribution, TokenId,
};

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (one, other) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    A,
    /// The entropy of its tokens is 0.1 bits higher, a shift of half a standard deviation.
    Unsure,
    /// Its responses are half as long again.
    Longer,
    /// It refuses 15 % of requests instead of 1 %.
    Refusing,
    /// It begins with other words, with the same probabilities.
    OtherWords,
    /// A fifth of its responses repeat themselves.
    Looping,
    /// A fifth of its responses are cut off, instead of a fiftieth.
    CutShort,
}

impl Model {
    pub fn answer(self, random: &mut Random) -> ResponseMeasurements {
        let more = if self == Model::Unsure { 0.1 } else { 0.0 };
        let entropy = (0.6 + more + 0.2 * random.normal()).max(0.0);
        let longer = if self == Model::Longer { 1.5f64.ln() } else { 0.0 };
        let tokens = (5.0 + longer + 0.6 * random.normal()).exp() as u64;
        let refusals = if self == Model::Refusing { 0.15 } else { 0.01 };
        let is_refusal = random.uniform() < refusals;
        let loops = self == Model::Looping && random.uniform() < 0.2;
        let share = if loops { 0.9 } else { 0.03 * random.uniform() };
        let cuts = if self == Model::CutShort { 0.2 } else { 0.02 };
        let cut = random.uniform() < cuts;
        let first = if self == Model::OtherWords { 100 } else { 0 };
        let sharpness = 0.5 + random.uniform();
        let offset = (random.uniform() * 4.0) as u64;
        let told = (0..5u64).map(|rank| {
            let logarithm = -1.2 - sharpness * (rank as f64);
            (TokenId(first + offset + rank), logarithm)
        });
        ResponseMeasurements {
            entropy: Some(Entropy {
                tokens,
                min: entropy,
                max: None,
                reported_probability: 0.9,
                comparable_min: Some(entropy),
            }),
            first_token: TokenDistribution::from_log_probabilities(told),
            tokens: Some(tokens),
            refusal: is_refusal.then_some(RefusalSignal::Prefix),
            hit_length_limit: cut,
            repetition: Some(Repetition {
                repeated_share: share,
                longest_run_share: 0.0,
                is_loop: false,
            }),
            text_bytes: 0,
            is_truncated: false,
        }
    }
}
