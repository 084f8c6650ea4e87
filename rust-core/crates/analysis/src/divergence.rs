//! The distance between two distributions, by token.

use crate::distribution::{TokenDistribution, TokenId, surprisal_term};
use std::collections::BTreeMap;

/// Returns the Jensen-Shannon divergence (Lin 1991) of the reported parts of two distributions, in bits: 0 if they are the
/// same, 1 if they have nothing in common.
///
/// Tokens are matched by identity, not by rank. The unreported tokens of both sides are one shared
/// outcome. If both report the same tokens, merging the rest is a function of the outcome, so this
/// value is a lower bound of the divergence of the complete distributions (data-processing
/// inequality). Otherwise, a token that only one side reports counts as impossible on the other
/// side, although it may be one of that side's unreported tokens: the value then describes only the
/// reported parts and is not a bound.
#[must_use]
pub fn jensen_shannon(one: &TokenDistribution, other: &TokenDistribution) -> f64 {
    let mut outcomes: BTreeMap<TokenId, (f64, f64)> = BTreeMap::new();
    for outcome in one.reported_tokens() {
        outcomes.entry(outcome.token).or_default().0 = outcome.probability;
    }
    for outcome in other.reported_tokens() {
        outcomes.entry(outcome.token).or_default().1 = outcome.probability;
    }
    let rest = (one.unreported_probability(), other.unreported_probability());
    let pairs = outcomes.into_values().chain(std::iter::once(rest));
    pairs
        .map(|(p, q)| contribution(p, q))
        .sum::<f64>()
        .clamp(0.0, 1.0)
}

/// Returns the contribution of one outcome: `s(m) - (s(p) + s(q)) / 2` with `m = (p + q) / 2` and `s(x) = x log2(1/x)`.
pub(crate) fn contribution(p: f64, q: f64) -> f64 {
    surprisal_term((p + q) / 2.0) - (surprisal_term(p) + surprisal_term(q)) / 2.0
}
