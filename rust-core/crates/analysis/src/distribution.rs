//! The distribution of one token, as far as a provider tells it.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Which token: a digest of its bytes, so that distributions are compared by what tokens are and not by their rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u64);

impl TokenId {
    /// Of a token's bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        TokenId(hasher.finish())
    }
}

/// A token and how likely it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenProbability {
    /// Which one.
    pub token: TokenId,
    /// 0 to 1.
    pub probability: f64,
}

/// How far the logarithm of a probability may be above that of 1, and the sum of probabilities above 1, by rounding.
const ROUNDING_TOLERANCE: f64 = 0.01;
/// What is left untold and yet nothing.
const NEGLIGIBLE: f64 = 1e-6;

/// The distribution of one token: what was told of it, and how likely all the rest is together.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenDistribution {
    /// Most likely first; no token twice. Those that were told to be impossible are there, too.
    reported: Vec<TokenProbability>,
    unreported: f64,
}

impl TokenDistribution {
    /// Of natural logarithms of probabilities, as providers tell them. A token that is told twice counts once, with the
    /// larger one; `-inf`, and sentinels such as -9999, are the probability 0. What is no probability is passed over.
    /// Probabilities whose sum is above 1 by rounding are made to sum to 1.
    ///
    /// `None` when nothing was told, all was told to be impossible, or the sum is far above 1.
    #[must_use]
    pub fn from_log_probabilities(told: impl IntoIterator<Item = (TokenId, f64)>) -> Option<Self> {
        let mut outcomes: Vec<TokenProbability> = told
            .into_iter()
            .filter(|(_, logarithm)| *logarithm <= ROUNDING_TOLERANCE)
            .map(|(token, logarithm)| TokenProbability {
                token,
                probability: logarithm.min(0.0).exp(),
            })
            .collect();
        outcomes.sort_by(|a, b| {
            a.token
                .cmp(&b.token)
                .then(b.probability.total_cmp(&a.probability))
        });
        outcomes.dedup_by_key(|outcome| outcome.token);
        outcomes.sort_by(|a, b| {
            b.probability
                .total_cmp(&a.probability)
                .then(a.token.cmp(&b.token))
        });
        let sum: f64 = outcomes.iter().map(|outcome| outcome.probability).sum();
        if sum <= 0.0 || sum > 1.0 + ROUNDING_TOLERANCE {
            return None;
        }
        if sum > 1.0 {
            for outcome in &mut outcomes {
                outcome.probability /= sum;
            }
        }
        Some(TokenDistribution {
            reported: outcomes,
            unreported: (1.0 - sum).max(0.0),
        })
    }

    /// What was told, most likely first.
    #[must_use]
    pub fn told(&self) -> &[TokenProbability] {
        &self.reported
    }

    /// How likely what was not told is together.
    #[must_use]
    pub fn rest(&self) -> f64 {
        self.unreported
    }

    /// The same with only the `depth` most likely tokens told; `None` when fewer were told and something is left, for then
    /// it is not known which they are.
    #[must_use]
    pub fn truncated_to(mut self, depth: usize) -> Option<Self> {
        if self.reported.len() < depth && self.unreported > NEGLIGIBLE {
            return None;
        }
        let cut: f64 = self
            .reported
            .drain(depth.min(self.reported.len())..)
            .map(|outcome| outcome.probability)
            .sum();
        // It is kept for as long as its window.
        self.reported.shrink_to_fit();
        self.unreported = (self.unreported + cut).min(1.0);
        Some(self)
    }

    /// The least entropy that it can have, in bits: all that was not told is one outcome (Shannon 1948, the grouping
    /// property). It is at most `log2(k + 1)` where `k` tokens were told.
    #[must_use]
    pub fn min_entropy(&self) -> f64 {
        self.reported_entropy() + surprisal_term(self.unreported)
    }

    /// The most entropy that it can have, in bits, where `vocabulary` tokens exist: what was not told is spread evenly over
    /// them. `None` when there are not more tokens than were told, though something is left.
    #[must_use]
    pub fn max_entropy(&self, vocabulary: u64) -> Option<f64> {
        if self.unreported <= 0.0 {
            return Some(self.reported_entropy());
        }
        let untold = vocabulary.checked_sub(self.reported.len() as u64)?;
        (untold > 0).then(|| {
            self.reported_entropy()
                + surprisal_term(self.unreported)
                + self.unreported * (untold as f64).log2()
        })
    }

    fn reported_entropy(&self) -> f64 {
        self.reported
            .iter()
            .map(|outcome| surprisal_term(outcome.probability))
            .sum()
    }
}

/// `p log2(1/p)`, which is 0 at 0.
pub(crate) fn surprisal_term(probability: f64) -> f64 {
    if probability <= 0.0 {
        return 0.0;
    }
    // Never -0.0 or below: p is at most 1.
    (probability * -probability.log2()).max(0.0)
}
