//! Until when an evaluation may run, and how seldom it looks at the clock.

use std::time::{Duration, Instant};

use crate::Fault;

/// Bytes of work between two readings of the clock: some microseconds.
const WORK_BETWEEN_READINGS: usize = 8 * 1024;

/// The instant after which an evaluation is given up with [`Fault::Budget`].
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Option<Instant>,
}

impl Deadline {
    /// A deadline that is `budget` from now. Reads the clock.
    #[must_use]
    pub fn after(budget: Duration) -> Self {
        Self::from(Instant::now(), budget)
    }

    /// A deadline that is `budget` from `start`, for a caller who knows the time.
    #[must_use]
    pub fn from(start: Instant, budget: Duration) -> Self {
        Self {
            at: start.checked_add(budget),
        }
    }

    /// No deadline; for tests and tools.
    #[must_use]
    pub fn never() -> Self {
        Self { at: None }
    }

    fn check(self) -> Result<(), Fault> {
        match self.at {
            Some(at) if Instant::now() >= at => Err(Fault::Budget),
            _ => Ok(()),
        }
    }
}

/// Counts work, and reads the clock when enough has been done.
pub(crate) struct Clock {
    deadline: Deadline,
    work: usize,
    searched: bool,
}

impl Clock {
    pub(crate) fn new(deadline: &Deadline) -> Self {
        Self {
            deadline: *deadline,
            work: 0,
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
        self.deadline.check()
    }

    /// Accounts for a rule that was applied to `bytes` bytes: work whose duration is up to the rule.
    pub(crate) fn searched(&mut self, bytes: usize) -> Result<(), Fault> {
        self.searched = true;
        self.passed(bytes.saturating_add(64))
    }

    /// Ends the evaluation. Without any rule applied the work was as short as the text, and the clock is not read.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        if self.searched {
            self.deadline.check()
        } else {
            Ok(())
        }
    }
}
