use std::cell::RefCell;
use std::time::Instant;

use crate::profiler::{Profiler, nanoseconds};
use crate::stage::Stage;

/// Maximum number of unused lap sets that each thread keeps.
const MAX_FREE_LAPS: usize = 1024;

thread_local! {
    #[expect(clippy::vec_box, reason = "a span returns its box to the pool")]
    static FREE_LAPS: RefCell<Vec<Box<Laps>>> = const { RefCell::new(Vec::new()) };
}

/// The time of one exchange, in laps. Whether it is measured is decided once, at its start.
///
/// A span is one word: while profiling is off it is only written and tested, otherwise it points to reused laps. A span that
/// is dropped without [`Span::finish`] records nothing.
#[derive(Debug, Default)]
#[must_use = "an exchange is recorded by finish()"]
pub struct Span(Option<Box<Laps>>);

#[derive(Debug)]
struct Laps {
    start: Instant,
    /// The end of the last lap.
    last_lap_end: Instant,
    /// Nanoseconds spent in each stage.
    spent: [u64; Stage::COUNT],
    /// Bit n is set if stage n has occurred, even with no duration.
    occurred: u16,
}

impl Span {
    /// Starts an exchange at a time that the caller already knows.
    #[inline]
    pub fn start(profiler: &Profiler, now: Instant) -> Self {
        Span(profiler.is_enabled().then(|| Laps::new(now)))
    }

    /// Starts an exchange now; the clock is only read if profiling is on.
    #[inline]
    pub fn start_now(profiler: &Profiler) -> Self {
        Span(profiler.is_enabled().then(|| Laps::new(Instant::now())))
    }

    /// Whether this exchange is measured.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.0.is_some()
    }

    /// Adds the time since the last lap to `stage`. A time before the last lap counts as that of the last lap.
    #[inline]
    pub fn lap(&mut self, stage: Stage, now: Instant) {
        if let Some(laps) = &mut self.0 {
            laps.lap(stage, now);
        }
    }

    /// Adds the time until now; the clock is only read if the exchange is measured.
    #[inline]
    pub fn lap_now(&mut self, stage: Stage) {
        if let Some(laps) = &mut self.0 {
            laps.lap(stage, Instant::now());
        }
    }

    /// Leaves the time since the last lap unaccounted.
    #[inline]
    pub fn skip(&mut self, now: Instant) {
        if let Some(laps) = &mut self.0 {
            laps.advance(now);
        }
    }

    /// Returns the nanoseconds of a stage so far; `None` if it has not occurred or the exchange is not measured.
    pub fn nanoseconds(&self, stage: Stage) -> Option<u64> {
        let laps = self.0.as_ref()?;
        laps.has(stage).then(|| laps.spent[stage as usize])
    }

    /// Ends the exchange and records it: every stage that occurred, the unaccounted time, and the total.
    #[inline]
    pub fn finish(mut self, profiler: &Profiler, now: Instant) {
        if let Some(laps) = &mut self.0 {
            laps.record(profiler, now);
        }
    }

    /// Ends the exchange now; the clock is only read if the exchange is measured.
    #[inline]
    pub fn finish_now(mut self, profiler: &Profiler) {
        if let Some(laps) = &mut self.0 {
            laps.record(profiler, Instant::now());
        }
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if let Some(laps) = self.0.take() {
            laps.recycle();
        }
    }
}

impl Laps {
    fn new(now: Instant) -> Box<Self> {
        let begun = Laps {
            start: now,
            last_lap_end: now,
            spent: [0; Stage::COUNT],
            occurred: 0,
        };
        match FREE_LAPS.try_with(|spare| spare.borrow_mut().pop()) {
            Ok(Some(mut laps)) => {
                *laps = begun;
                laps
            }
            _ => Box::new(begun),
        }
    }

    #[cold]
    fn recycle(self: Box<Self>) {
        // This fails while the thread ends; the memory is then freed.
        let _ = FREE_LAPS.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MAX_FREE_LAPS {
                spare.push(self);
            }
        });
    }

    fn has(&self, stage: Stage) -> bool {
        self.occurred & 1 << stage as u16 != 0
    }

    /// Advances the end of the last lap, never backwards, and returns by how many nanoseconds.
    fn advance(&mut self, now: Instant) -> u64 {
        let passed = nanoseconds(now.saturating_duration_since(self.last_lap_end));
        self.last_lap_end = self.last_lap_end.max(now);
        passed
    }

    fn lap(&mut self, stage: Stage, now: Instant) {
        let passed = self.advance(now);
        let spent = &mut self.spent[stage as usize];
        *spent = spent.saturating_add(passed);
        self.occurred |= 1 << stage as u16;
    }

    fn record(&mut self, profiler: &Profiler, now: Instant) {
        self.advance(now);
        let total = nanoseconds(self.last_lap_end - self.start);
        let accounted = self
            .spent
            .iter()
            .fold(0, |sum: u64, spent| sum.saturating_add(*spent));
        for stage in Stage::ALL {
            if self.has(stage) {
                profiler.stages[stage as usize].record(self.spent[stage as usize]);
            }
        }
        profiler.unaccounted.record(total.saturating_sub(accounted));
        profiler.total.record(total);
    }
}
