//! The state of payload storage, shared by both threads.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::recorder::LedgerUnavailable;

/// The state of payload storage: whether bodies can be stored.
#[derive(Default)]
pub(super) struct State {
    current: AtomicU8,
    /// Whether a space check is queued.
    check_queued: AtomicBool,
}

const HEALTHY: u8 = 0;
const FULL: u8 = 1;
const FAILED: u8 = 2;

impl State {
    /// Sets whether the volume is full. A failure state is not changed.
    pub(super) fn set_full(&self, full: bool) {
        let (from, to) = match full {
            true => (HEALTHY, FULL),
            false => (FULL, HEALTHY),
        };
        let _ = self
            .current
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Stops storage for the rest of this worker run.
    pub(super) fn fail(&self) {
        self.current.store(FAILED, Ordering::Release);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.current.load(Ordering::Acquire) == FAILED
    }

    /// Returns whether a space check should be queued, because none is queued, and marks it as
    /// queued.
    pub(super) fn should_queue_check(&self) -> bool {
        !self.check_queued.swap(true, Ordering::AcqRel)
    }

    /// Marks that the space check was taken from the queue.
    pub(super) fn mark_check_dequeued(&self) {
        self.check_queued.store(false, Ordering::Release);
    }

    pub(super) fn check(&self) -> Result<(), LedgerUnavailable> {
        match self.current.load(Ordering::Acquire) {
            HEALTHY => Ok(()),
            FULL => Err(LedgerUnavailable::Full),
            _ => Err(LedgerUnavailable::Payloads),
        }
    }
}
