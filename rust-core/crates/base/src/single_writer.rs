//! Counters that one thread writes and others read.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// A counter that only the data-plane thread increments, so an addition needs no locked
/// instruction.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `more`; the counter saturates at its maximum.
    pub fn add(&self, more: u64) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before.saturating_add(more), Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The upper bound that OpenTelemetry's conventions for generative AI recommend for histograms of
/// request durations, in microseconds: 81.92 s.
const MAX_BOUND_US: u64 = 81_920_000;

/// The number of buckets in these conventions: bounds double from 10 ms, and the last bucket has no
/// bound.
const DEFAULT_BUCKETS: usize = 15;
/// The number of buckets if bounds start at 0.625 ms.
pub const FINE_BUCKETS: usize = 19;

/// A histogram of durations, with few buckets: each bound is twice the previous one.
#[derive(Debug)]
pub struct Histogram<const BUCKETS: usize = DEFAULT_BUCKETS> {
    /// The last bucket is for durations above every bound.
    counts: [Counter; BUCKETS],
    sum_us: Counter,
}

/// The contents of a histogram at one time.
pub struct HistogramSnapshot<const BUCKETS: usize = DEFAULT_BUCKETS> {
    /// Upper bounds in seconds, each with the number of values above the previous bound and not
    /// above this bound.
    pub buckets: [(f64, u64); BUCKETS],
    pub count: u64,
    pub sum_seconds: f64,
}

impl<const BUCKETS: usize> Default for Histogram<BUCKETS> {
    fn default() -> Self {
        Histogram {
            counts: std::array::from_fn(|_| Counter::default()),
            sum_us: Counter::default(),
        }
    }
}

impl<const BUCKETS: usize> Histogram<BUCKETS> {
    const FIRST_BOUND_US: u64 = MAX_BOUND_US >> (BUCKETS - 2);

    /// Counts a duration.
    pub fn observe(&self, microseconds: u64) {
        let firsts = microseconds.div_ceil(Self::FIRST_BOUND_US);
        // The least n with 2^n >= firsts.
        let bucket = u64::BITS - firsts.saturating_sub(1).leading_zeros();
        self.counts[(BUCKETS - 1).min(bucket as usize)].add(1);
        self.sum_us.add(microseconds);
    }

    pub fn snapshot(&self) -> HistogramSnapshot<BUCKETS> {
        let mut buckets = [(f64::INFINITY, 0); BUCKETS];
        for (index, (bound, count)) in buckets.iter_mut().enumerate() {
            *count = self.counts[index].get();
            if index < BUCKETS - 1 {
                *bound = (Self::FIRST_BOUND_US << index) as f64 / 1e6;
            }
        }
        HistogramSnapshot {
            count: buckets.iter().map(|(_, count)| count).sum(),
            sum_seconds: self.sum_us.get() as f64 / 1e6,
            buckets,
        }
    }
}

impl EncodeMetric for Counter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_counter::<NoLabelSet, _, u64>(&self.get(), None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

impl<const BUCKETS: usize> EncodeMetric for Histogram<BUCKETS> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let found = self.snapshot();
        encoder.encode_histogram::<NoLabelSet>(found.sum_seconds, found.count, &found.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_of(microseconds: u64) -> f64 {
        let histogram: Histogram = Histogram::default();
        histogram.observe(microseconds);
        let found = histogram.snapshot();
        let mut filled = found.buckets.into_iter().filter(|(_, count)| *count > 0);
        filled.next().map_or(f64::NAN, |(bound, _)| bound)
    }

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        assert_eq!([0, 1, 10_000].map(bucket_of), [0.01; 3]);
        for doublings in 1..DEFAULT_BUCKETS - 1 {
            let bound = Histogram::<DEFAULT_BUCKETS>::FIRST_BOUND_US << doublings;
            let (below, seconds) = (
                Histogram::<DEFAULT_BUCKETS>::FIRST_BOUND_US << (doublings - 1),
                bound as f64 / 1e6,
            );
            assert_eq!([below + 1, bound].map(bucket_of), [seconds; 2], "{bound}");
        }
        assert_eq!([81_920_001, u64::MAX].map(bucket_of), [f64::INFINITY; 2]);
    }

    #[test]
    fn the_bounds_double_from_10_milliseconds_to_81_92_seconds() {
        let bounds = Histogram::<DEFAULT_BUCKETS>::default()
            .snapshot()
            .buckets
            .map(|(bound, _)| bound);
        assert_eq!(bounds[..3], [0.01, 0.02, 0.04]);
        assert_eq!(bounds[DEFAULT_BUCKETS - 2..], [81.92, f64::INFINITY]);
    }

    #[test]
    fn the_bounds_of_a_fine_histogram_end_as_those_of_a_usual_one_and_begin_below_a_millisecond() {
        let fine = Histogram::<FINE_BUCKETS>::default()
            .snapshot()
            .buckets
            .map(|(bound, _)| bound);
        let usual = Histogram::<DEFAULT_BUCKETS>::default()
            .snapshot()
            .buckets
            .map(|(bound, _)| bound);
        assert_eq!(fine[..5], [0.000_625, 0.001_25, 0.002_5, 0.005, 0.01]);
        assert_eq!(fine[4..], usual);
    }

    #[test]
    fn a_sum_beyond_all_numbers_stays_at_the_greatest() {
        let count = Counter::default();
        count.add(u64::MAX);
        count.add(1);
        assert_eq!(count.get(), u64::MAX);
    }
}
