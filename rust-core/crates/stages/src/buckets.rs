//! Histogram bounds: two in each power of two, from 1 microsecond to 12.6 seconds, so a quantile read from them is off by at
//! most a third. The bounds are 1, 2, 3, 4, 6, 8, 12, 16, 24, … microseconds.

/// Number of buckets: the buckets with a bound, and one for longer durations.
pub(crate) const COUNT: usize = 48;

/// Returns the bucket of a duration: the first whose bound is not below it.
pub(crate) fn index(nanoseconds: u64) -> usize {
    let microseconds = nanoseconds.div_ceil(1000);
    if microseconds < 2 {
        return 0;
    }
    // In an octave 2^k < u <= 2^(k+1), the upper half starts after 2^k + 2^(k-1).
    let below = microseconds - 1;
    let octave = below.ilog2();
    let upper_half = octave > 0 && below >> (octave - 1) & 1 == 1;
    let index = 2 * octave as usize + usize::from(upper_half || octave == 0);
    index.min(COUNT - 1)
}

/// Returns the maximum duration of a bucket, in microseconds; `None` for the last.
pub(crate) fn bound_microseconds(index: usize) -> Option<u64> {
    if index >= COUNT - 1 {
        return None;
    }
    Some(match index {
        0 => 1,
        1 => 2,
        _ if index.is_multiple_of(2) => 3 << (index / 2 - 1),
        _ => 2 << (index / 2),
    })
}

#[cfg(test)]
#[path = "buckets_tests.rs"]
mod tests;
