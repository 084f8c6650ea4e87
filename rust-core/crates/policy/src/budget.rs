//! CPU time budget of an evaluation, and how often the clock is read.
//!
//! The budget counts the thread's CPU time (`CLOCK_THREAD_CPUTIME_ID`, clock_gettime(2)), so that neither a busy machine nor
//! a CPU quota of the container affects the result for a text.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::EvaluationError;

/// Bytes of work between two clock readings: some hundred microseconds.
const CLOCK_READ_INTERVAL_BYTES: usize = 8 * 1024;

/// The remaining CPU time of one evaluation, or of several evaluations that share it. An evaluation
/// that exceeds it fails with [`EvaluationError::BudgetExceeded`].
#[derive(Debug, Clone)]
pub struct Budget {
    remaining: Option<Duration>,
}

impl Budget {
    /// Creates a budget of this much CPU time.
    #[must_use]
    pub fn new(time: Duration) -> Self {
        Self {
            remaining: Some(time),
        }
    }

    /// Creates a budget without a limit, for tests and tools.
    #[must_use]
    pub fn unlimited() -> Self {
        Self { remaining: None }
    }
}

/// Counts the work of an evaluation, or of one slice of it, and reads the clock when enough work has been done.
pub(crate) struct Clock<'b> {
    budget: &'b mut Budget,
    /// CPU time after which a slice should end.
    slice: Duration,
    work_bytes: usize,
    /// The first clock reading.
    start: Option<Duration>,
    /// CPU time from the first to the last reading.
    used: Duration,
    has_searched: bool,
}

impl<'b> Clock<'b> {
    pub(crate) fn new(budget: &'b mut Budget, slice: Duration) -> Self {
        Self {
            budget,
            slice,
            work_bytes: 0,
            start: None,
            used: Duration::ZERO,
            has_searched: false,
        }
    }

    /// Charges a pass over `bytes` bytes.
    pub(crate) fn charge_pass(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.work_bytes = self.work_bytes.saturating_add(bytes);
        if self.work_bytes < CLOCK_READ_INTERVAL_BYTES {
            return Ok(());
        }
        self.work_bytes = 0;
        self.read_clock()
    }

    /// Charges a rule that was applied to `bytes` bytes: work whose duration depends on the rule.
    pub(crate) fn charge_search(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        if !self.has_searched {
            self.has_searched = true;
            self.start.get_or_insert_with(thread_cpu_time);
        }
        self.charge_pass(bytes.saturating_add(64))
    }

    /// Whether the slice has used its time, as of the last clock reading.
    pub(crate) fn is_slice_over(&self) -> bool {
        self.used >= self.slice
    }

    fn read_clock(&mut self) -> Result<(), EvaluationError> {
        let now = thread_cpu_time();
        self.used = now.saturating_sub(*self.start.get_or_insert(now));
        match self.budget.remaining {
            Some(left) if self.used >= left => Err(EvaluationError::BudgetExceeded),
            _ => Ok(()),
        }
    }

    /// Ends the evaluation or the slice and charges its time to the budget. A short evaluation that applied no rule never
    /// read the clock, and costs nothing.
    pub(crate) fn finish(mut self) -> Result<(), EvaluationError> {
        if self.start.is_none() {
            return Ok(());
        }
        let outcome = self.read_clock();
        if let Some(left) = &mut self.budget.remaining {
            *left = left.saturating_sub(self.used);
        }
        outcome
    }
}

/// Returns the CPU time used by this thread.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Budget, CLOCK_READ_INTERVAL_BYTES, Clock};
    use crate::EvaluationError;

    fn spin(duration: Duration) {
        let start = super::thread_cpu_time();
        while super::thread_cpu_time() < start + duration {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn time_in_which_the_thread_does_not_run_costs_nothing() {
        let mut budget = Budget::new(Duration::from_millis(5));
        let mut clock = Clock::new(&mut budget, Duration::MAX);
        clock.charge_pass(CLOCK_READ_INTERVAL_BYTES).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        assert_eq!(clock.charge_pass(CLOCK_READ_INTERVAL_BYTES), Ok(()));
        assert_eq!(clock.finish(), Ok(()));
    }

    #[test]
    fn slices_share_the_budget() {
        let mut budget = Budget::new(Duration::from_millis(100));
        let slice = |budget: &mut Budget| {
            let mut clock = Clock::new(budget, Duration::from_millis(10));
            clock.charge_pass(CLOCK_READ_INTERVAL_BYTES)?;
            spin(Duration::from_millis(40));
            let outcome = clock.charge_pass(CLOCK_READ_INTERVAL_BYTES);
            assert!(clock.is_slice_over());
            clock.finish().and(outcome)
        };
        assert_eq!([(); 2].map(|()| slice(&mut budget)), [Ok(()); 2]);
        assert_eq!(slice(&mut budget), Err(EvaluationError::BudgetExceeded));
    }
}
