use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buckets;

/// A distribution of durations. Recording makes two atomic additions, and a concurrent reader may
/// see only the first.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: [AtomicU64; buckets::COUNT],
    /// The sum of all durations; 64 bits are enough for 584 years.
    sum_nanoseconds: AtomicU64,
}

/// The contents of a histogram at one moment.
pub(crate) struct DurationSnapshot {
    /// The number of durations in each bucket, not cumulative.
    pub(crate) counts: [u64; buckets::COUNT],
    pub(crate) sum_nanoseconds: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Histogram {
            counts: array::from_fn(|_| AtomicU64::new(0)),
            sum_nanoseconds: AtomicU64::new(0),
        }
    }

    pub(crate) fn record(&self, nanoseconds: u64) {
        self.counts[buckets::index(nanoseconds)].fetch_add(1, Ordering::Relaxed);
        self.sum_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> DurationSnapshot {
        DurationSnapshot {
            counts: array::from_fn(|index| self.counts[index].load(Ordering::Relaxed)),
            sum_nanoseconds: self.sum_nanoseconds.load(Ordering::Relaxed),
        }
    }
}
