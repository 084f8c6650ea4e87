//! How much of the processor's time an evaluation may take, and how seldom it looks at the clock.
//!
//! It is the time of the thread (`CLOCK_THREAD_CPUTIME_ID`, clock_gettime(2)), so that neither a busy machine nor a quota of
//! the container decides about a text.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::EvaluationError;

/// Bytes of work between two readings of the clock: some hundred microseconds.
const CLOCK_READ_INTERVAL_BYTES: usize = 8 * 1024;

/// The processor time that is left to an evaluation, or to several that share it. Beyond it, it is given up with
/// [`EvaluationError::BudgetExceeded`].
#[derive(Debug, Clone)]
pub struct Budget {
    remaining: Option<Duration>,
}

impl Budget {
    /// So much processor time.
    #[must_use]
    pub fn new(time: Duration) -> Self {
        Self {
            remaining: Some(time),
        }
    }

    /// No bound; for tests and tools.
    #[must_use]
    pub fn unlimited() -> Self {
        Self { remaining: None }
    }
}

/// Counts the work of an evaluation, or of a slice of one, and reads the clock when enough has been done.
pub(crate) struct Clock<'b> {
    budget: &'b mut Budget,
    /// Processor time after which a slice should end.
    slice: Duration,
    work_bytes: usize,
    /// What the clock showed when it was read first.
    start: Option<Duration>,
    /// Processor time from then to the last reading.
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

    /// Accounts for a pass over `bytes` bytes.
    pub(crate) fn charge_pass(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.work_bytes = self.work_bytes.saturating_add(bytes);
        if self.work_bytes < CLOCK_READ_INTERVAL_BYTES {
            return Ok(());
        }
        self.work_bytes = 0;
        self.read_clock()
    }

    /// Accounts for a rule that was applied to `bytes` bytes: work whose duration is up to the rule.
    pub(crate) fn searched(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        if !self.has_searched {
            self.has_searched = true;
            self.start.get_or_insert_with(thread_cpu_time);
        }
        self.charge_pass(bytes.saturating_add(64))
    }

    /// Whether the slice has taken its time, as far as the clock was read.
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

    /// Ends the evaluation or the slice and charges it. Without any rule applied a short one read no clock, and costs
    /// nothing.
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

/// The processor time that this thread has taken.
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
