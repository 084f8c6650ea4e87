//! The bounds of a partly reported token distribution are correct, and distributions are compared by token.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_analysis::{TokenDistribution, TokenId, jensen_shannon};
use proptest::prelude::*;

fn told(logarithms: &[(u64, f64)]) -> Option<TokenDistribution> {
    TokenDistribution::from_log_probabilities(
        logarithms
            .iter()
            .map(|(token, logarithm)| (TokenId(*token), *logarithm)),
    )
}

fn of_probabilities(probabilities: &[(u64, f64)]) -> TokenDistribution {
    let logarithms: Vec<(u64, f64)> = probabilities.iter().map(|(token, p)| (*token, p.ln())).collect();
    told(&logarithms).unwrap()
}

fn close(value: f64, wanted: f64) {
    assert!((value - wanted).abs() < 1e-9, "{value} is not {wanted}");
}

#[test]
fn of_a_whole_distribution_both_bounds_are_its_entropy() {
    let fair = of_probabilities(&[(1, 0.5), (2, 0.25), (3, 0.25)]);
    close(fair.min_entropy(), 1.5);
    close(fair.max_entropy(3).unwrap(), 1.5);
}

#[test]
fn what_was_not_told_is_one_outcome_below_and_spread_evenly_above() {
    let half = of_probabilities(&[(1, 0.5)]);
    close(half.unreported_probability(), 0.5);
    close(half.min_entropy(), 1.0);
    // Half of the probability over 1024 other tokens: 0.5 + 0.5 * (1 + 10).
    close(half.max_entropy(1025).unwrap(), 6.0);
    assert_eq!(half.max_entropy(1), None);
    assert_eq!(half.max_entropy(0), None);
}

#[test]
fn what_is_no_probability_is_passed_over() {
    for none in [f64::NAN, f64::INFINITY, 3.0] {
        let distribution = told(&[(1, 0.5f64.ln()), (2, none)]).unwrap();
        assert_eq!(distribution.reported_tokens().len(), 1, "{none}");
        assert_eq!(told(&[(1, none)]), None, "{none}");
    }
    assert_eq!(told(&[]), None);
}

#[test]
fn sentinels_for_impossible_tokens_are_told_and_impossible() {
    for impossible in [f64::NEG_INFINITY, -9999.0] {
        let distribution = told(&[(1, 0.0), (2, impossible)]).unwrap();
        assert_eq!(distribution.reported_tokens().len(), 2);
        close(distribution.min_entropy(), 0.0);
        assert_eq!(told(&[(2, impossible)]), None);
    }
}

#[test]
fn a_token_that_is_told_twice_counts_once() {
    let distribution = told(&[(1, 0.5f64.ln()), (2, 0.25f64.ln()), (1, 0.4f64.ln())]).unwrap();
    assert_eq!(distribution.reported_tokens().len(), 2);
    close(distribution.unreported_probability(), 0.25);
}

#[test]
fn sums_above_one_by_rounding_are_one_and_sums_far_above_are_no_distribution() {
    let rounded = of_probabilities(&[(1, 0.7), (2, 0.305)]);
    let sum: f64 = rounded
        .reported_tokens()
        .iter()
        .map(|outcome| outcome.probability)
        .sum();
    close(sum + rounded.unreported_probability(), 1.0);
    assert_eq!(told(&[(1, 0.7f64.ln()), (2, 0.5f64.ln())]), None);
}

#[test]
fn fewer_alternatives_than_are_compared_are_not_comparable_unless_they_are_all() {
    assert_eq!(of_probabilities(&[(1, 0.5), (2, 0.2)]).truncated_to(3), None);
    let all = of_probabilities(&[(1, 0.75), (2, 0.25)]);
    assert_eq!(all.clone().truncated_to(3), Some(all));
    let cut = of_probabilities(&[(1, 0.5), (2, 0.25), (3, 0.125)])
        .truncated_to(2)
        .unwrap();
    assert_eq!(cut.reported_tokens().len(), 2);
    close(cut.unreported_probability(), 0.25);
}

#[test]
fn distributions_with_nothing_in_common_are_one_bit_apart() {
    let (one, other) = (of_probabilities(&[(1, 1.0)]), of_probabilities(&[(2, 1.0)]));
    close(jensen_shannon(&one, &other), 1.0);
    close(jensen_shannon(&one, &one), 0.0);
}

#[test]
fn the_same_tokens_in_another_order_are_no_distance_and_other_tokens_of_the_same_ranks_are() {
    let one = of_probabilities(&[(1, 0.6), (2, 0.3), (3, 0.1)]);
    let told_otherwise = of_probabilities(&[(3, 0.1), (1, 0.6), (2, 0.3)]);
    close(jensen_shannon(&one, &told_otherwise), 0.0);
    let swapped = of_probabilities(&[(2, 0.6), (1, 0.3), (3, 0.1)]);
    assert!(jensen_shannon(&one, &swapped) > 0.05);
}

/// A distribution over tokens 0 to 19.
fn whole() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.001f64..1.0, 20).prop_map(|weights| {
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    })
}

fn top(whole: &[f64], count: usize) -> TokenDistribution {
    let mut ranked: Vec<(u64, f64)> = (0..).zip(whole.iter().copied()).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    of_probabilities(&ranked[..count])
}

fn entropy(whole: &[f64]) -> f64 {
    whole.iter().map(|p| -p * p.log2()).sum()
}

proptest! {
    #[test]
    fn the_entropy_lies_between_its_bounds_and_more_told_brings_them_closer(whole in whole(), count in 1usize..19) {
        let (few, more) = (top(&whole, count), top(&whole, count + 1));
        let entropy = entropy(&whole);
        prop_assert!(few.min_entropy() <= entropy + 1e-9);
        prop_assert!(entropy <= few.max_entropy(20).unwrap() + 1e-9);
        prop_assert!(few.min_entropy() <= more.min_entropy() + 1e-9);
        prop_assert!(more.max_entropy(20).unwrap() <= few.max_entropy(20).unwrap() + 1e-9);
        prop_assert!(few.min_entropy() <= ((count + 1) as f64).log2() + 1e-9);
    }

    #[test]
    fn the_divergence_is_symmetric_within_its_range_and_below_that_of_the_whole(
        one in whole(), other in whole(), count in 1u64..19,
    ) {
        // Both report the same tokens.
        let part = |whole: &[f64]| of_probabilities(&(0..count).map(|token| (token, whole[token as usize])).collect::<Vec<_>>());
        let all = |whole: &[f64]| of_probabilities(&(0..20u64).map(|token| (token, whole[token as usize])).collect::<Vec<_>>());
        let divergence = jensen_shannon(&part(&one), &part(&other));
        prop_assert!((0.0..=1.0).contains(&divergence));
        prop_assert!((divergence - jensen_shannon(&part(&other), &part(&one))).abs() < 1e-12);
        prop_assert!(divergence <= jensen_shannon(&all(&one), &all(&other)) + 1e-9);
    }

    #[test]
    fn whatever_is_told_the_numbers_are_finite(told in prop::collection::vec((0u64..5, any::<f64>()), 0..12)) {
        let outcomes = told.iter().map(|(token, logarithm)| (TokenId(*token), *logarithm));
        if let Some(distribution) = TokenDistribution::from_log_probabilities(outcomes) {
            let sum: f64 = distribution.reported_tokens().iter().map(|outcome| outcome.probability).sum();
            prop_assert!((sum + distribution.unreported_probability() - 1.0).abs() < 1e-9);
            prop_assert!(distribution.min_entropy() >= 0.0 && distribution.min_entropy().is_finite());
            if let Some(most) = distribution.max_entropy(1_000_000) {
                prop_assert!(most + 1e-9 >= distribution.min_entropy() && most.is_finite());
            }
        }
    }
}
