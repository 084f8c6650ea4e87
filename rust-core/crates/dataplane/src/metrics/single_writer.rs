//! Numbers that one thread adds to and others read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count. Only the data-plane thread adds to it, so adding needs no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Stays at the greatest number once it is there.
    pub(crate) fn add(&self, more: u64) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before.saturating_add(more), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Buckets with a bound: 10 ms, and each time twice as long up to 81.92 s, as OpenTelemetry's conventions for generative
/// AI advise for the durations of requests.
const BOUNDED: usize = 14;
const FIRST_BOUND_US: u64 = 10_000;

/// Durations, in few buckets.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// The last is for what is longer than every bound.
    counts: [Count; BOUNDED + 1],
    sum_us: Count,
}

/// What a histogram holds.
pub(crate) struct Distribution {
    /// Upper bounds in seconds, and how many are above the bound before and not above this one.
    pub(crate) buckets: [(f64, u64); BOUNDED + 1],
    pub(crate) count: u64,
    pub(crate) sum_seconds: f64,
}

impl Histogram {
    pub(crate) fn observe(&self, microseconds: u64) {
        let firsts = microseconds.div_ceil(FIRST_BOUND_US);
        // The least n with 2^n >= firsts.
        let bucket = u64::BITS - firsts.saturating_sub(1).leading_zeros();
        self.counts[BOUNDED.min(bucket as usize)].add(1);
        self.sum_us.add(microseconds);
    }

    pub(crate) fn get(&self) -> Distribution {
        let mut buckets = [(f64::INFINITY, 0); BOUNDED + 1];
        for (index, (bound, count)) in buckets.iter_mut().enumerate() {
            *count = self.counts[index].get();
            if index < BOUNDED {
                *bound = (FIRST_BOUND_US << index) as f64 / 1e6;
            }
        }
        Distribution {
            count: buckets.iter().map(|(_, count)| count).sum(),
            sum_seconds: self.sum_us.get() as f64 / 1e6,
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_of(microseconds: u64) -> f64 {
        let histogram = Histogram::default();
        histogram.observe(microseconds);
        let found = histogram.get();
        let mut filled = found.buckets.into_iter().filter(|(_, count)| *count > 0);
        filled.next().map_or(f64::NAN, |(bound, _)| bound)
    }

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        assert_eq!([0, 1, 10_000].map(bucket_of), [0.01; 3]);
        for doublings in 1..BOUNDED {
            let bound = FIRST_BOUND_US << doublings;
            let (below, seconds) = (FIRST_BOUND_US << (doublings - 1), bound as f64 / 1e6);
            assert_eq!([below + 1, bound].map(bucket_of), [seconds; 2], "{bound}");
        }
        assert_eq!([81_920_001, u64::MAX].map(bucket_of), [f64::INFINITY; 2]);
    }

    #[test]
    fn the_bounds_double_from_10_milliseconds_to_81_92_seconds() {
        let bounds = Histogram::default().get().buckets.map(|(bound, _)| bound);
        assert_eq!(bounds[..3], [0.01, 0.02, 0.04]);
        assert_eq!(bounds[BOUNDED - 1..], [81.92, f64::INFINITY]);
    }

    #[test]
    fn a_sum_beyond_all_numbers_stays_at_the_greatest() {
        let count = Count::default();
        count.add(u64::MAX);
        count.add(1);
        assert_eq!(count.get(), u64::MAX);
    }
}
