//! Tests whether a window of responses differs from the reference.

use crate::distribution::TokenId;
use crate::divergence::contribution;
use crate::feature::{Feature, FeatureTest};
use crate::random::Random;
use crate::two_sample_tests::{fisher_exact, kolmogorov_smirnov};
use crate::window::ResponseWindow;
use crate::{AnalysisSettings, TokenDistribution};
use std::collections::HashMap;

/// Minimum number of values for a comparison.
const MIN_VALUES: usize = 30;
/// Maximum number of distinguished first tokens; the other tokens are counted together.
const MAX_TOKENS: usize = 64;
/// Number of permutations with at least the observed distance at which the test stops without a finding (Besag and Clifford
/// 1991).
const MAX_EXCEEDANCES: usize = 10;

/// Compares a window with the reference. If nothing has changed, the probability that any feature reports a difference is at
/// most [`AnalysisSettings::significance_level`] (Bonferroni). `seed` determines the permutations.
pub(crate) fn compare(
    reference: &ResponseWindow,
    window: &ResponseWindow,
    settings: &AnalysisSettings,
    seed: u64,
) -> Vec<FeatureTest> {
    let level = settings.significance_level() / Feature::ALL.len() as f64;
    let smirnov = |one: &[f32], other: &[f32]| {
        let values = one.len().min(other.len());
        let (distance, p) = kolmogorov_smirnov(one, other);
        (values, distance, p)
    };
    let fisher = |one: usize, other: usize| {
        let (n, m) = (reference.response_count, window.response_count);
        let distance = (one as f64 / n.max(1) as f64 - other as f64 / m.max(1) as f64).abs();
        (n.min(m), distance, fisher_exact((one, n), (other, m)))
    };
    let test = |feature| {
        let (values, distance, p) = match feature {
            Feature::Entropy => smirnov(&reference.entropies, &window.entropies),
            Feature::FirstToken => {
                compare_first_tokens(&reference.first_tokens, &window.first_tokens, level, seed)?
            }
            Feature::Length => smirnov(&reference.lengths, &window.lengths),
            Feature::Repetition => smirnov(&reference.repetitions, &window.repetitions),
            Feature::Refusal => fisher(reference.refusals, window.refusals),
            Feature::LengthLimit => fisher(reference.length_limited, window.length_limited),
        };
        (values >= MIN_VALUES).then_some(FeatureTest {
            feature,
            sample_size: values,
            distance,
            p_value: p,
            is_significant: p <= level,
        })
    };
    Feature::ALL.into_iter().filter_map(test).collect()
}

/// Returns the divergence of the mean distributions of first tokens, and its p-value among random
/// splits of the pooled distributions.
fn compare_first_tokens(
    one: &[TokenDistribution],
    other: &[TokenDistribution],
    level: f64,
    seed: u64,
) -> Option<(usize, f64, f64)> {
    let size = one.len().min(other.len());
    if size < MIN_VALUES {
        return None;
    }
    let pooled: Vec<&TokenDistribution> = one[..size].iter().chain(&other[..size]).collect();
    let places = token_columns(&pooled);
    // The last column is for all other tokens.
    let mut total = vec![0.0; places.len() + 1];
    let rows: Vec<Vec<(usize, f64)>> = pooled.iter().map(|told| row(told, &places)).collect();
    for (place, probability) in rows.iter().flatten() {
        total[*place] += probability;
    }
    let mut part = vec![0.0; total.len()];
    let mut divergence = |members: &[usize]| {
        part.fill(0.0);
        for (place, probability) in members.iter().flat_map(|member| &rows[*member]) {
            part[*place] += probability;
        }
        let both = part.iter().zip(&total);
        let sum: f64 = both
            .map(|(part, total)| contribution(part / size as f64, (total - part) / size as f64))
            .sum();
        sum.clamp(0.0, 1.0)
    };
    let mut order: Vec<usize> = (0..2 * size).collect();
    let seen = divergence(&order[..size]);
    let mut random = Random::new(seed);
    let most = (1.0 / level).ceil() as usize;
    let mut exceeded = 0;
    for drawn in 1..=most {
        for at in 0..size {
            let from = at + random.below(2 * size - at);
            order.swap(at, from);
        }
        // Tolerance for sums of the same numbers in a different order.
        exceeded += usize::from(divergence(&order[..size]) >= seen - 1e-12);
        if exceeded == MAX_EXCEEDANCES {
            return Some((size, seen, exceeded as f64 / drawn as f64));
        }
    }
    Some((size, seen, (exceeded + 1) as f64 / (most + 1) as f64))
}

/// Returns the columns of the tokens that are most likely in the pooled distributions.
fn token_columns(pooled: &[&TokenDistribution]) -> HashMap<TokenId, usize> {
    let mut sums: HashMap<TokenId, f64> = HashMap::new();
    for outcome in pooled.iter().flat_map(|told| told.reported_tokens()) {
        *sums.entry(outcome.token).or_default() += outcome.probability;
    }
    let mut likely: Vec<(TokenId, f64)> = sums.into_iter().collect();
    likely.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    likely.truncate(MAX_TOKENS);
    likely
        .into_iter()
        .enumerate()
        .map(|(place, (token, _))| (token, place))
        .collect()
}

fn row(told: &TokenDistribution, places: &HashMap<TokenId, usize>) -> Vec<(usize, f64)> {
    let mut rest = told.unreported_probability();
    let mut row = Vec::with_capacity(told.reported_tokens().len() + 1);
    for outcome in told.reported_tokens() {
        match places.get(&outcome.token) {
            Some(place) => row.push((*place, outcome.probability)),
            None => rest += outcome.probability,
        }
    }
    row.push((places.len(), rest));
    row
}
