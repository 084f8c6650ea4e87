use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall-clock time at the price of the monotonic clock that was read anyway.
///
/// Between two settings of the anchor it advances with the monotonic clock, so a step of the system's clock arrives
/// with the next setting and never in the middle of an exchange.
pub(crate) struct Clock {
    anchor: Cell<(Instant, u64)>,
    counted: Cell<Counted>,
}

/// Where the time stands by which limits count.
#[derive(Clone, Copy)]
struct Counted {
    at: Instant,
    /// Unix microseconds.
    time: u64,
    /// By how much that is ahead of the system's clock.
    lead: u64,
}

/// The time by which limits count goes so much slower while it is ahead: a fourth.
const SLOWER: u64 = 4;

impl Clock {
    pub(crate) fn new() -> Self {
        let (at, time) = (Instant::now(), unix_micros());
        Clock {
            anchor: Cell::new((at, time)),
            counted: Cell::new(Counted { at, time, lead: 0 }),
        }
    }

    /// Follows the system's clock; called about once a second.
    pub(crate) fn set(&self) {
        self.set_to(Instant::now(), unix_micros());
    }

    fn set_to(&self, at: Instant, wall: u64) {
        self.anchor.set((at, wall));
        let time = self.counted(at).max(wall);
        let lead = time - wall;
        self.counted.set(Counted { at, time, lead });
    }

    /// The time by which limits count, in unix microseconds: it never goes back, and it never stands still.
    ///
    /// When the system's clock is set back, this one goes on ahead of it, at three fourths of its pace until both agree: a
    /// minute may take eighty seconds then, and nobody waits until a wrong time has come. Forward it follows at once.
    pub(crate) fn counted(&self, at: Instant) -> u64 {
        let counted = self.counted.get();
        let passed = micros(at.saturating_duration_since(counted.at));
        let slower = (passed / SLOWER).min(counted.lead);
        counted.time.saturating_add(passed - slower)
    }

    /// By how much the time by which limits count is ahead of the system's clock, in microseconds.
    pub(crate) fn lead(&self) -> u64 {
        self.counted.get().lead
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
    fn when_the_clock_is_set_back_limits_count_on_and_come_back_to_it() {
        const HOUR: u64 = 3_600_000_000;
        const SECOND: Duration = Duration::from_secs(1);
        let clock = Clock::new();
        let (mut at, mut wall) = clock.anchor.get();
        let (begun, first) = (at, wall);
        let mut before = clock.counted(at);
        wall -= 2 * HOUR;
        let mut agreed = None;
        for second in 1..=9 * 3600 {
            (at, wall) = (at + SECOND, wall + 1_000_000);
            clock.set_to(at, wall);
            let now = clock.counted(at);
            let step = now - before;
            assert!((750_000..=1_000_000).contains(&step), "{step} in second {second}");
            agreed = agreed.or((clock.lead() == 0).then_some(second));
            assert_eq!(clock.unix_micros(at), wall);
            before = now;
        }
        assert!(agreed.is_some_and(|second| second <= 8 * 3600 + 1), "{agreed:?}");
        assert_eq!(before, wall);
        assert!(clock.counted(begun) >= first, "it never goes back");
        clock.set_to(at, wall + HOUR);
        assert_eq!(clock.counted(at), wall + HOUR, "forward it follows at once");
    }

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
