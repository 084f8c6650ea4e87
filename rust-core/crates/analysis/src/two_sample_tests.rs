//! Tests whether two samples have the same distribution.

/// Returns the p-value of the two-sample Kolmogorov-Smirnov test for samples of equal size, and the statistic, the maximum
/// difference of their distribution functions. The p-value is exact if no two values are equal (Gnedenko and Korolyuk 1951),
/// and otherwise too large, which avoids false findings. Of a longer sample, only the first values are used, so that both
/// sizes are equal.
#[must_use]
pub fn kolmogorov_smirnov(one: &[f32], other: &[f32]) -> (f64, f64) {
    let size = one.len().min(other.len());
    if size == 0 {
        return (0.0, 1.0);
    }
    let sorted = |sample: &[f32]| {
        let mut sample = sample[..size].to_vec();
        sample.sort_by(f32::total_cmp);
        sample
    };
    let (one, other) = (sorted(one), sorted(other));
    let (mut left, mut right, mut greatest) = (0, 0, 0);
    while left < size && right < size {
        let value = one[left].min(other[right]);
        left += one[left..].iter().take_while(|other| **other <= value).count();
        right += other[right..].iter().take_while(|other| **other <= value).count();
        greatest = greatest.max(left.abs_diff(right));
    }
    (
        greatest as f64 / size as f64,
        exceedance_probability(size, greatest),
    )
}

/// Returns `P(n D >= k)` for two samples of `n` values: `2 sum_i (-1)^(i-1) C(2n, n - ik) / C(2n, n)`.
fn exceedance_probability(size: usize, greatest: usize) -> f64 {
    if greatest == 0 {
        return 1.0;
    }
    let mut sum = 0.0;
    let mut sign = 1.0;
    for shift in (greatest..=size).step_by(greatest) {
        let ratio = |step: usize| ((size - shift + step) as f64 / (size + step) as f64).ln();
        let term = (1..=shift).map(ratio).sum::<f64>().exp();
        sum += sign * term;
        if term < 1e-18 {
            break;
        }
        sign = -sign;
    }
    (2.0 * sum).clamp(0.0, 1.0)
}

/// Returns the two-sided p-value of Fisher's exact test for `a` of `n` in one sample and `b` of `m` in the other (Fisher
/// 1922). It is valid for every sample size.
#[must_use]
pub fn fisher_exact((a, n): (usize, usize), (b, m): (usize, usize)) -> f64 {
    let (a, b) = (a.min(n), b.min(m));
    let (hits, all) = (a + b, n + m);
    let logarithms = log_factorials(all);
    let choose = |n: usize, k: usize| logarithms[n] - logarithms[k] - logarithms[n - k];
    let probability = |x: usize| (choose(n, x) + choose(m, hits - x) - choose(all, hits)).exp();
    let observed = probability(a) * (1.0 + 1e-9);
    let possible = hits.saturating_sub(m)..=hits.min(n);
    let as_extreme = possible.map(probability).filter(|p| *p <= observed);
    as_extreme.sum::<f64>().clamp(0.0, 1.0)
}

/// Returns the logarithms of 0! to `most`!.
fn log_factorials(most: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let more = (1..=most).map(|factor| {
        sum += (factor as f64).ln();
        sum
    });
    std::iter::once(0.0).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, wanted: f64) -> bool {
        (value - wanted).abs() < 1e-9
    }

    #[test]
    fn kolmogorov_smirnov_counts_the_paths_that_stray() {
        // Of the C(6,3) = 20 orders of three and three values, two are separated.
        let (statistic, p) = kolmogorov_smirnov(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        assert!(close(statistic, 1.0) && close(p, 2.0 / 20.0), "{p}");
        let (statistic, p) = kolmogorov_smirnov(&[1.0, 3.0, 5.0], &[2.0, 4.0, 6.0]);
        assert!(close(statistic, 1.0 / 3.0) && close(p, 1.0), "{p}");
    }

    #[test]
    fn kolmogorov_smirnov_agrees_with_all_orders_of_eight_and_eight_values() {
        let size = 8;
        let mut counts = vec![0u32; size + 1];
        let orders = (0u32..1 << (2 * size)).filter(|order| order.count_ones() as usize == size);
        let mut all = 0;
        for order in orders {
            let (mut height, mut greatest) = (0i32, 0);
            for step in 0..2 * size {
                height += if order >> step & 1 == 1 { 1 } else { -1 };
                greatest = greatest.max(height.unsigned_abs() as usize);
            }
            counts[greatest] += 1;
            all += 1;
        }
        for least in 1..=size {
            let as_far: u32 = counts[least..].iter().sum();
            assert!(
                close(
                    exceedance_probability(size, least),
                    f64::from(as_far) / f64::from(all)
                ),
                "{least}"
            );
        }
    }

    #[test]
    fn equal_values_are_no_difference() {
        assert_eq!(kolmogorov_smirnov(&[1.0; 50], &[1.0; 50]), (0.0, 1.0));
        assert_eq!(kolmogorov_smirnov(&[], &[1.0]), (0.0, 1.0));
    }

    #[test]
    fn fisher_knows_the_lady_and_her_tea() {
        // Fisher 1935: three of four cups right has the two-sided p-value 34/70.
        assert!(close(fisher_exact((3, 4), (1, 4)), 34.0 / 70.0));
        assert!(close(fisher_exact((4, 4), (0, 4)), 2.0 / 70.0));
        assert!(close(fisher_exact((0, 0), (3, 4)), 1.0));
    }
}
