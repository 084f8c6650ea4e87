//! The part of a token's distribution that a provider reports.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The id of a token: a digest of its bytes, so that distributions are compared by token and not by
/// rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u64);

impl TokenId {
    /// Computes the id from a token's bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        TokenId(hasher.finish())
    }
}

/// A token and its probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenProbability {
    /// The token.
    pub token: TokenId,
    /// The probability, 0 to 1.
    pub probability: f64,
}

/// Tolerance for rounding errors: how far a log probability may be above 0, and a sum of probabilities above 1.
const ROUNDING_TOLERANCE: f64 = 0.01;
/// Unreported probability that counts as zero.
const NEGLIGIBLE: f64 = 1e-6;

/// The distribution of one token: the reported tokens, and the total probability of all others.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenDistribution {
    /// The reported tokens, the most likely first and each once, including tokens with probability
    /// 0.
    reported: Vec<TokenProbability>,
    unreported: f64,
}

impl TokenDistribution {
    /// Creates a distribution from the natural logarithms of probabilities, as providers report them. A token that is
    /// reported twice counts once, with the larger probability; `-inf`, and sentinels such as -9999, are probability 0.
    /// Values that are not log probabilities are ignored. Probabilities whose sum exceeds 1 by rounding are normalised.
    ///
    /// Returns `None` if nothing was reported, all reported tokens have probability 0, or the sum is far above 1.
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

    /// Returns the reported tokens, most likely first.
    #[must_use]
    pub fn reported_tokens(&self) -> &[TokenProbability] {
        &self.reported
    }

    /// Returns the total probability of the unreported tokens.
    #[must_use]
    pub fn unreported_probability(&self) -> f64 {
        self.unreported
    }

    /// Returns the distribution with only the `depth` most likely tokens reported. `None` if fewer were reported and there
    /// is probability left, because the remaining tokens are then unknown.
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
        // The distribution is kept as long as its window.
        self.reported.shrink_to_fit();
        self.unreported = (self.unreported + cut).min(1.0);
        Some(self)
    }

    /// Returns the minimum possible entropy, in bits: all unreported tokens are one outcome (Shannon 1948, the grouping
    /// property). It is at most `log2(k + 1)` if `k` tokens were reported.
    #[must_use]
    pub fn min_entropy(&self) -> f64 {
        self.reported_entropy() + surprisal_term(self.unreported)
    }

    /// Returns the maximum possible entropy, in bits, for a vocabulary of `vocabulary` tokens: the unreported probability is
    /// spread evenly over the unreported tokens. `None` if there are no unreported tokens although probability is left.
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

/// Returns `p log2(1/p)` for the probability `p`; 0 for `p = 0`.
pub(crate) fn surprisal_term(probability: f64) -> f64 {
    if probability <= 0.0 {
        return 0.0;
    }
    // Never -0.0 or negative: p is at most 1.
    (probability * -probability.log2()).max(0.0)
}
