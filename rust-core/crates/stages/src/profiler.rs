use std::array;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::histogram::Histogram;
use crate::stage::{Interval, Stage};

/// The lowest bit of the state is the switch; the rest counts open scopes.
const ENABLED_BIT: usize = 1;
const SCOPE_UNIT: usize = 2;

/// The profiling switch and the histograms of all stages. It is shared between threads in an `Arc`.
///
/// Profiling is on while the switch is on or at least one scope is open. Scopes are counted, so overlapping ones may be
/// closed in any order, and closing one never turns off what another has turned on.
#[derive(Debug)]
pub struct Profiler {
    state: AtomicUsize,
    /// Whether profiling was ever on, so that there are series to expose.
    was_enabled: AtomicBool,
    pub(crate) stages: [Histogram; Stage::COUNT],
    pub(crate) unaccounted: Histogram,
    pub(crate) total: Histogram,
    pub(crate) intervals: [Histogram; Interval::COUNT],
}

impl Profiler {
    /// Creates a profiler without observations whose switch is on or off.
    pub fn new(enabled: bool) -> Self {
        Profiler {
            state: AtomicUsize::new(if enabled { ENABLED_BIT } else { 0 }),
            was_enabled: AtomicBool::new(enabled),
            stages: array::from_fn(|_| Histogram::new()),
            unaccounted: Histogram::new(),
            total: Histogram::new(),
            intervals: array::from_fn(|_| Histogram::new()),
        }
    }

    /// Whether to measure an exchange that starts now.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }

    /// Whether it was on at any time.
    pub(crate) fn was_enabled(&self) -> bool {
        self.was_enabled.load(Ordering::Relaxed)
    }

    /// Sets the switch and returns its previous state. Open scopes are not affected and not reported.
    pub fn set_enabled(&self, enabled: bool) -> bool {
        let before = if enabled {
            self.was_enabled.store(true, Ordering::Relaxed);
            self.state.fetch_or(ENABLED_BIT, Ordering::Relaxed)
        } else {
            self.state.fetch_and(!ENABLED_BIT, Ordering::Relaxed)
        };
        before & ENABLED_BIT != 0
    }

    /// Opens a scope.
    pub fn enter(&self) {
        self.was_enabled.store(true, Ordering::Relaxed);
        self.state.fetch_add(SCOPE_UNIT, Ordering::Relaxed);
    }

    /// Closes a scope. Returns false, and changes nothing, if none is open.
    pub fn exit(&self) -> bool {
        self.state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                state.checked_sub(SCOPE_UNIT)
            })
            .is_ok()
    }

    /// Returns the number of open scopes.
    pub fn open_scopes(&self) -> usize {
        self.state.load(Ordering::Relaxed) / SCOPE_UNIT
    }

    /// Starts measuring an interval, if profiling is on.
    #[inline]
    pub fn timer(&self) -> Timer {
        Timer(self.is_enabled().then(Instant::now))
    }

    /// Records an interval that was measured elsewhere, if profiling is on.
    pub fn record(&self, interval: Interval, duration: Duration) {
        if self.is_enabled() {
            self.intervals[interval as usize].record(nanoseconds(duration));
        }
    }
}

/// The start of an interval; empty if profiling was off then.
#[derive(Debug, Clone, Copy)]
#[must_use = "an interval is recorded by stop()"]
pub struct Timer(Option<Instant>);

impl Timer {
    /// Records the time since the start, also if profiling was turned off meanwhile.
    #[inline]
    pub fn stop(self, profiler: &Profiler, interval: Interval) {
        if let Some(start) = self.0 {
            profiler.intervals[interval as usize].record(nanoseconds(start.elapsed()));
        }
    }
}

/// Returns a duration in nanoseconds, at most 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
