use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall-clock time, computed from a reading of the monotonic clock that is needed anyway.
///
/// Between two syncs it advances with the monotonic clock. So a step of the system's clock takes
/// effect at the next sync, and never in the middle of an exchange.
pub struct Clock {
    anchor: Cell<(Instant, u64)>,
    limit_time: Cell<LimitTime>,
}

/// The state of the limit time, by which limits are counted.
#[derive(Clone, Copy)]
struct LimitTime {
    at: Instant,
    /// The limit time in Unix microseconds.
    time: u64,
    /// The microseconds by which the limit time is ahead of the system's clock.
    lead: u64,
}

/// The divisor of the slowdown: while the limit time is ahead, it runs slower by one fourth.
const SLOWDOWN_FACTOR: u64 = 4;
/// Maximum microseconds by which the limit time may be ahead: an hour, which takes four hours to
/// catch up. A larger lead means that the system's clock was wrong before, and record times must
/// not stay wrong for longer.
pub const MAX_LIMIT_TIME_LEAD: u64 = 3_600_000_000;
/// The minimum change of the system's clock relative to the monotonic clock that counts as a step,
/// in microseconds.
const MIN_STEP: u64 = 1_000_000;
/// The maximum time between two readings of the monotonic clock if the thread was not interrupted
/// between them.
const MAX_READING_GAP: Duration = Duration::from_millis(10);
const READINGS: usize = 5;

/// A step of the system's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// The time without the step, in Unix microseconds.
    pub from: u64,
    /// The time after the step, in Unix microseconds.
    pub to: u64,
    /// Whether the limit time was set back as well.
    pub moves_limit_time_back: bool,
}

impl ClockStep {
    pub fn is_backward(self) -> bool {
        self.to < self.from
    }
}

impl std::fmt::Display for ClockStep {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let direction = if self.is_backward() { "back" } else { "ahead" };
        let seconds = Duration::from_micros(self.from.abs_diff(self.to)).as_secs_f64();
        write!(
            formatter,
            "the system's clock was set {direction} by {seconds:.1} seconds"
        )
    }
}

impl Clock {
    pub fn new() -> Self {
        let (at, time) = (Instant::now(), unix_micros());
        Clock {
            anchor: Cell::new((at, time)),
            limit_time: Cell::new(LimitTime { at, time, lead: 0 }),
        }
    }

    /// Syncs with the system's clock; called about once a second. Returns the step since the last
    /// call, if there was one.
    pub fn sync(&self) -> Option<ClockStep> {
        let (at, wall) = read_both_clocks();
        self.sync_to(at, wall)
    }

    fn sync_to(&self, at: Instant, wall: u64) -> Option<ClockStep> {
        let from = self.unix_micros(at);
        self.anchor.set((at, wall));
        let counted = self.limit_time(at);
        let turns_back = counted.saturating_sub(wall) > MAX_LIMIT_TIME_LEAD;
        let time = if turns_back { wall } else { counted.max(wall) };
        let lead = time - wall;
        self.limit_time.set(LimitTime { at, time, lead });
        (turns_back || from.abs_diff(wall) >= MIN_STEP).then_some(ClockStep {
            from,
            to: wall,
            moves_limit_time_back: turns_back,
        })
    }

    /// Returns the limit time, by which limits are counted, in Unix microseconds. It never stops.
    ///
    /// If the system's clock is set back by at most an hour, the limit time stays ahead and runs at
    /// three fourths of its speed until both agree: a minute may take eighty seconds then, and no
    /// client has to wait for a wrong time to pass. If the clock is set back further, or forward,
    /// the limit time follows immediately.
    pub fn limit_time(&self, at: Instant) -> u64 {
        let counted = self.limit_time.get();
        let passed = micros(at.saturating_duration_since(counted.at));
        let slower = (passed / SLOWDOWN_FACTOR).min(counted.lead);
        counted.time.saturating_add(passed - slower)
    }

    /// Returns how far the limit time is ahead of the system's clock, in microseconds.
    pub fn limit_time_lead(&self) -> u64 {
        self.limit_time.get().lead
    }

    /// Returns the Unix microseconds at a reading of the monotonic clock.
    pub fn unix_micros(&self, at: Instant) -> u64 {
        let (anchor, wall) = self.anchor.get();
        match at.checked_duration_since(anchor) {
            Some(since) => wall.saturating_add(micros(since)),
            None => wall.saturating_sub(micros(anchor.duration_since(at))),
        }
    }
}

/// Reads both clocks, as close together in time as possible.
fn read_both_clocks() -> (Instant, u64) {
    let mut before = Instant::now();
    for _ in 0..READINGS {
        let wall = unix_micros();
        let after = Instant::now();
        if after.duration_since(before) <= MAX_READING_GAP {
            return (after, wall);
        }
        before = after;
    }
    (before, unix_micros())
}

/// Returns a duration in whole microseconds.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the wall-clock time in whole seconds since 1970, as in Prometheus gauges.
pub fn unix_seconds() -> i64 {
    i64::try_from(unix_micros() / 1_000_000).unwrap_or(i64::MAX)
}

/// Returns the wall-clock time in microseconds since 1970.
pub fn unix_micros() -> u64 {
    micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;
    const HOUR: u64 = 3600 * SECOND;
    const YEAR: u64 = 365 * 24 * HOUR;

    /// Returns a clock that was synced once, and the values of both clocks.
    fn set() -> (Clock, Instant, u64) {
        let clock = Clock::new();
        let (at, wall) = clock.anchor.get();
        (clock, at, wall)
    }

    #[test]
    fn when_the_clock_is_set_back_limits_count_on_and_come_back_to_it() {
        let (clock, mut at, mut wall) = set();
        let (begun, first) = (at, wall);
        let mut before = clock.limit_time(at);
        wall -= HOUR;
        let mut agreed = None;
        for second in 1..=5 * 3600 {
            (at, wall) = (at + Duration::from_secs(1), wall + SECOND);
            let step = clock.sync_to(at, wall);
            assert_eq!(step.is_some(), second == 1, "{step:?} in second {second}");
            assert!(step.is_none_or(|step| !step.moves_limit_time_back));
            let now = clock.limit_time(at);
            let step = now - before;
            assert!((750_000..=SECOND).contains(&step), "{step} in second {second}");
            agreed = agreed.or((clock.limit_time_lead() == 0).then_some(second));
            assert_eq!(clock.unix_micros(at), wall);
            before = now;
        }
        assert!(agreed.is_some_and(|second| second <= 4 * 3600 + 1), "{agreed:?}");
        assert_eq!(before, wall);
        assert!(clock.limit_time(begun) >= first, "it never goes back");
        clock.sync_to(at, wall + HOUR);
        assert_eq!(clock.limit_time(at), wall + HOUR, "forward it follows at once");
    }

    #[test]
    fn a_clock_that_is_set_back_by_more_than_an_hour_is_followed_and_stays_so() {
        for back in [
            HOUR + SECOND,
            2 * HOUR,
            24 * HOUR,
            31 * 24 * HOUR,
            YEAR,
            10 * YEAR,
        ] {
            let (clock, at, wall) = set();
            let (at, wall) = (at + Duration::from_secs(1), wall + SECOND);
            let step = clock.sync_to(at, wall - back).unwrap();
            assert_eq!(
                (step.from, step.to, step.moves_limit_time_back),
                (wall, wall - back, true)
            );
            assert_eq!((clock.limit_time(at), clock.limit_time_lead()), (wall - back, 0));
            let later = at + Duration::from_secs(1);
            assert_eq!(clock.sync_to(later, wall - back + SECOND), None);
            assert_eq!(clock.limit_time(later), wall - back + SECOND);
        }
    }

    #[test]
    fn steps_that_come_one_after_the_other_add_up() {
        let (clock, at, wall) = set();
        let back = 40 * 60 * SECOND;
        assert!(!clock.sync_to(at, wall - back).unwrap().moves_limit_time_back);
        assert!(clock.sync_to(at, wall - 2 * back).unwrap().moves_limit_time_back);
        assert_eq!(clock.limit_time(at), wall - 2 * back);
    }

    #[test]
    fn a_step_is_a_second_or_more_either_way_and_what_a_clock_is_slowed_by_is_none() {
        for ahead in [SECOND, HOUR, 10 * YEAR] {
            let (clock, at, wall) = set();
            let step = clock.sync_to(at, wall + ahead).unwrap();
            assert_eq!(
                (step.from, step.to, step.moves_limit_time_back),
                (wall, wall + ahead, false)
            );
            assert_eq!(clock.limit_time(at), wall + ahead);
            let back = clock.sync_to(at, wall).unwrap();
            assert_eq!((back.from, back.to), (wall + ahead, wall));
            assert_eq!(back.moves_limit_time_back, ahead > HOUR);
        }
        for drift in [0, 1, 500, SECOND - 1] {
            let (clock, at, wall) = set();
            assert_eq!(clock.sync_to(at, wall + drift), None);
            let (clock, at, wall) = set();
            assert_eq!(clock.sync_to(at, wall - drift), None);
        }
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
