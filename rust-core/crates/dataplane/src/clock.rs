use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall-clock time at the price of the monotonic clock that was read anyway.
///
/// Between two settings of the anchor it advances with the monotonic clock, so a step of the system's clock arrives
/// with the next setting and never in the middle of an exchange.
pub(crate) struct Clock {
    anchor: Cell<(Instant, u64)>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Clock {
            anchor: Cell::new((Instant::now(), unix_micros())),
        }
    }

    /// Follows the system's clock; called about once a second.
    pub(crate) fn set(&self) {
        self.anchor.set((Instant::now(), unix_micros()));
    }

    /// Unix microseconds at a reading of the monotonic clock.
    pub(crate) fn unix_micros(&self, at: Instant) -> u64 {
        let (anchor, wall) = self.anchor.get();
        match at.checked_duration_since(anchor) {
            Some(since) => wall.saturating_add(micros(since)),
            None => wall.saturating_sub(micros(anchor.duration_since(at))),
        }
    }
}

/// A duration in whole microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Wall-clock time in whole seconds since 1970, as Prometheus' gauges hold it.
pub(crate) fn unix_seconds() -> i64 {
    i64::try_from(unix_micros() / 1_000_000).unwrap_or(i64::MAX)
}

/// Wall-clock time in microseconds since 1970.
pub(crate) fn unix_micros() -> u64 {
    micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_advances_with_the_monotonic_clock_in_both_directions() {
        let clock = Clock::new();
        let (anchor, wall) = clock.anchor.get();
        assert_eq!(clock.unix_micros(anchor + Duration::from_micros(7)), wall + 7);
        if let Some(before) = anchor.checked_sub(Duration::from_micros(7)) {
            assert_eq!(clock.unix_micros(before), wall - 7);
        }
    }
}
