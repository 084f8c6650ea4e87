//! Whether bodies can be stored, as both threads see it.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::recorder::Unavailable;

/// Whether bodies can be stored.
#[derive(Default)]
pub(super) struct State {
    now: AtomicU8,
    /// Whether a look at the volume waits in the queue.
    look_waits: AtomicBool,
}

const AS_USUAL: u8 = 0;
const FULL: u8 = 1;
const FAILED: u8 = 2;

impl State {
    /// Sets whether the volume has space; a failure stays.
    pub(super) fn set_full(&self, full: bool) {
        let (from, to) = match full {
            true => (AS_USUAL, FULL),
            false => (FULL, AS_USUAL),
        };
        let _ = self
            .now
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Nothing is stored any more in this life of the worker.
    pub(super) fn fail(&self) {
        self.now.store(FAILED, Ordering::Release);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.now.load(Ordering::Acquire) == FAILED
    }

    /// Whether no look waits in the queue: then one may be put there.
    pub(super) fn wants_look(&self) -> bool {
        !self.look_waits.swap(true, Ordering::AcqRel)
    }

    /// A look was taken out of the queue.
    pub(super) fn looks(&self) {
        self.look_waits.store(false, Ordering::Release);
    }

    pub(super) fn check(&self) -> Result<(), Unavailable> {
        match self.now.load(Ordering::Acquire) {
            AS_USUAL => Ok(()),
            FULL => Err(Unavailable::Full),
            _ => Err(Unavailable::Payloads),
        }
    }
}
