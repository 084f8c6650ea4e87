//! How much of the processor's time an evaluation may take, and how seldom it looks at the clock.
//!
//! It is the time of the thread (`CLOCK_THREAD_CPUTIME_ID`, clock_gettime(2)), so that neither a busy machine nor a quota of
//! the container decides about a text.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Fault;

/// Bytes of work between two readings of the clock: some hundred microseconds.
const WORK_BETWEEN_READINGS: usize = 8 * 1024;

/// The processor time that is left to an evaluation, or to several that share it. Beyond it, it is given up with
/// [`Fault::Budget`].
#[derive(Debug, Clone)]
pub struct Budget {
    left: Option<Duration>,
}

impl Budget {
    /// So much processor time.
    #[must_use]
    pub fn of(time: Duration) -> Self {
        Self { left: Some(time) }
    }

    /// No bound; for tests and tools.
    #[must_use]
    pub fn unlimited() -> Self {
        Self { left: None }
    }
}

/// Counts the work of an evaluation, or of a slice of one, and reads the clock when enough has been done.
pub(crate) struct Clock<'b> {
    budget: &'b mut Budget,
    /// Processor time after which a slice should end.
    slice: Duration,
    work: usize,
    /// What the clock showed when it was read first.
    begin: Option<Duration>,
    /// Processor time from then to the last reading.
    used: Duration,
    searched: bool,
}

impl<'b> Clock<'b> {
    pub(crate) fn new(budget: &'b mut Budget, slice: Duration) -> Self {
        Self {
            budget,
            slice,
            work: 0,
            begin: None,
            used: Duration::ZERO,
            searched: false,
        }
    }

    /// Accounts for a pass over `bytes` bytes.
    pub(crate) fn passed(&mut self, bytes: usize) -> Result<(), Fault> {
        self.work = self.work.saturating_add(bytes);
        if self.work < WORK_BETWEEN_READINGS {
            return Ok(());
        }
        self.work = 0;
        self.read()
    }

    /// Accounts for a rule that was applied to `bytes` bytes: work whose duration is up to the rule.
    pub(crate) fn searched(&mut self, bytes: usize) -> Result<(), Fault> {
        if !self.searched {
            self.searched = true;
            self.begin.get_or_insert_with(processor_time);
        }
        self.passed(bytes.saturating_add(64))
    }

    /// Whether the slice has taken its time, as far as the clock was read.
    pub(crate) fn is_slice_over(&self) -> bool {
        self.used >= self.slice
    }

    fn read(&mut self) -> Result<(), Fault> {
        let now = processor_time();
        self.used = now.saturating_sub(*self.begin.get_or_insert(now));
        match self.budget.left {
            Some(left) if self.used >= left => Err(Fault::Budget),
            _ => Ok(()),
        }
    }

    /// Ends the evaluation or the slice and charges it. Without any rule applied a short one read no clock, and costs
    /// nothing.
    pub(crate) fn finish(mut self) -> Result<(), Fault> {
        if self.begin.is_none() {
            return Ok(());
        }
        let outcome = self.read();
        if let Some(left) = &mut self.budget.left {
            *left = left.saturating_sub(self.used);
        }
        outcome
    }
}

/// The processor time that this thread has taken.
#[must_use]
pub fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Budget, Clock, WORK_BETWEEN_READINGS};
    use crate::Fault;

    fn spin(duration: Duration) {
        let start = super::processor_time();
        while super::processor_time() < start + duration {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn time_in_which_the_thread_does_not_run_costs_nothing() {
        let mut budget = Budget::of(Duration::from_millis(5));
        let mut clock = Clock::new(&mut budget, Duration::MAX);
        clock.passed(WORK_BETWEEN_READINGS).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        assert_eq!(clock.passed(WORK_BETWEEN_READINGS), Ok(()));
        assert_eq!(clock.finish(), Ok(()));
    }

    #[test]
    fn slices_share_the_budget() {
        let mut budget = Budget::of(Duration::from_millis(100));
        let slice = |budget: &mut Budget| {
            let mut clock = Clock::new(budget, Duration::from_millis(10));
            clock.passed(WORK_BETWEEN_READINGS)?;
            spin(Duration::from_millis(40));
            let outcome = clock.passed(WORK_BETWEEN_READINGS);
            assert!(clock.is_slice_over());
            clock.finish().and(outcome)
        };
        assert_eq!([(); 2].map(|()| slice(&mut budget)), [Ok(()); 2]);
        assert_eq!(slice(&mut budget), Err(Fault::Budget));
    }
}
