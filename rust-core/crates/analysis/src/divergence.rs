//! How far two distributions are apart, token by token.

use crate::distribution::{TokenDistribution, TokenId, surprisal_term};
use std::collections::BTreeMap;

/// The Jensen-Shannon divergence (Lin 1991) of what was told of two distributions, in bits: 0 when they are the same, 1 when
/// they have nothing in common.
///
/// Tokens are matched by what they are, whatever their rank. What was not told is one outcome of its own on either side, the same one. Where
/// both tell of the same tokens, merging the rest is a function of the outcome, so the divergence of the whole distributions
/// is at least this (the data-processing inequality). Where they do not, a token that only one tells counts as
/// impossible on the other side, though it may stand in its rest: the value is then that of what was told, and
/// bounds nothing.
#[must_use]
pub fn jensen_shannon(one: &TokenDistribution, other: &TokenDistribution) -> f64 {
    let mut outcomes: BTreeMap<TokenId, (f64, f64)> = BTreeMap::new();
    for outcome in one.told() {
        outcomes.entry(outcome.token).or_default().0 = outcome.probability;
    }
    for outcome in other.told() {
        outcomes.entry(outcome.token).or_default().1 = outcome.probability;
    }
    let rest = (one.rest(), other.rest());
    let pairs = outcomes.into_values().chain(std::iter::once(rest));
    pairs
        .map(|(p, q)| contribution(p, q))
        .sum::<f64>()
        .clamp(0.0, 1.0)
}

/// What one outcome adds: `s(m) - (s(p) + s(q)) / 2` with `m = (p + q) / 2` and `s(x) = x log2(1/x)`.
pub(crate) fn contribution(p: f64, q: f64) -> f64 {
    surprisal_term((p + q) / 2.0) - (surprisal_term(p) + surprisal_term(q)) / 2.0
}
