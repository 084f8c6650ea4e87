//! Whether bodies can be stored, as both threads see it.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::recorder::LedgerUnavailable;

/// Whether bodies can be stored.
#[derive(Default)]
pub(super) struct State {
    current: AtomicU8,
    /// Whether a look at the volume waits in the queue.
    check_queued: AtomicBool,
}

const HEALTHY: u8 = 0;
const FULL: u8 = 1;
const FAILED: u8 = 2;

impl State {
    /// Sets whether the volume has space; a failure stays.
    pub(super) fn set_full(&self, full: bool) {
        let (from, to) = match full {
            true => (HEALTHY, FULL),
            false => (FULL, HEALTHY),
        };
        let _ = self
            .current
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Nothing is stored any more in this life of the worker.
    pub(super) fn fail(&self) {
        self.current.store(FAILED, Ordering::Release);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.current.load(Ordering::Acquire) == FAILED
    }

    /// Whether no look waits in the queue: then one may be put there.
    pub(super) fn should_queue_check(&self) -> bool {
        !self.check_queued.swap(true, Ordering::AcqRel)
    }

    /// A look was taken out of the queue.
    pub(super) fn check_dequeued(&self) {
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
