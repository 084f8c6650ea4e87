//! State shared by the data-plane thread and the ledger thread: the number of written records, the
//! number of durable records, and whether the log has stopped. Neither thread ever waits for a lock
//! of the other thread.

use crate::WalError;
use crate::resume_state::PositionedResumeState;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

type WakeFn = Box<dyn Fn() + Send + Sync>;

/// The progress of one incarnation's log. All counts are numbers of records: record `seq` is
/// written when `written() > seq`, and durable when `durable() > seq`.
#[derive(Default)]
pub struct Watermark {
    written: AtomicU64,
    written_bytes: AtomicU64,
    durable: AtomicU64,
    checkpointed: AtomicU64,
    segment: AtomicU64,
    salt_blocks: AtomicU64,
    sealed: AtomicBool,
    stop_reason: OnceLock<String>,
    /// Number of written records at which the ledger thread is woken; 0 when the thread does not
    /// sleep.
    wake_at: AtomicU64,
    parked_thread: Mutex<Option<Thread>>,
    mark: Mutex<Option<PositionedResumeState>>,
    on_progress: OnceLock<WakeFn>,
}

impl std::fmt::Debug for Watermark {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Watermark")
            .field("written", &self.written())
            .field("durable", &self.durable())
            .field("checkpointed", &self.checkpointed())
            .field("stopped", &self.stop_reason())
            .finish_non_exhaustive()
    }
}

impl Watermark {
    /// Returns the number of records written to the page cache. They survive the end of the
    /// process.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Returns the number of segment bytes written, including headers.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of records known to be on the disk. They survive a power loss.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Returns the number of records that the newest stored checkpoint covers.
    #[must_use]
    pub fn checkpointed(&self) -> u64 {
        self.checkpointed.load(Ordering::Acquire)
    }

    /// Returns the ordinal of the segment being written.
    #[must_use]
    pub fn segment(&self) -> u64 {
        self.segment.load(Ordering::Acquire)
    }

    /// Returns whether the last written record is a seal.
    #[must_use]
    pub fn sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    /// Returns whether a write or sync has failed. It never becomes false again.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.stop_reason.get().is_some()
    }

    /// Returns the failure that stopped the log; `None` while the log runs.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&str> {
        self.stop_reason.get().map(String::as_str)
    }

    /// Stops the log permanently: no record is acknowledged after this call. Only the first reason
    /// is stored.
    pub fn poison(&self, reason: impl Into<String>) {
        // A second failure is a consequence of the first.
        let _ = self.stop_reason.set(reason.into());
        self.notify_progress();
        self.wake_follower();
    }

    /// Sets a callback that runs whenever `durable` has increased or the log has stopped. The data
    /// plane passes the waker of its event loop. Only the first call of this function has an
    /// effect.
    pub fn on_progress(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_progress.set(Box::new(wake));
    }

    /// Parks the calling thread (the ledger thread) until more than `seen` records are written, the
    /// log has stopped, or `timeout` has passed. The call may also return early. Each wake-up costs
    /// the data plane a system call. To be woken once for many records, pass a `seen` somewhat
    /// above the number of followed records.
    pub fn wait_written(&self, seen: u64, timeout: Duration) {
        *self.parked_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
        self.wake_at.store(seen.saturating_add(1), Ordering::SeqCst);
        if self.written.load(Ordering::SeqCst) <= seen && !self.is_poisoned() {
            std::thread::park_timeout(timeout);
        }
        self.wake_at.store(0, Ordering::SeqCst);
    }

    /// Wakes the ledger thread if it is parked, for instance to drain or to prepare a segment.
    pub fn wake_follower(&self) {
        if self.wake_at.swap(0, Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(thread) = &*self.parked_thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }

    pub(crate) fn check(&self) -> Result<(), WalError> {
        match self.stop_reason() {
            None => Ok(()),
            Some(reason) => Err(WalError::Poisoned {
                reason: reason.to_owned(),
            }),
        }
    }

    pub(crate) fn set_written(&self, records: u64, more_bytes: u64, sealed: bool) {
        self.written_bytes.fetch_add(more_bytes, Ordering::Relaxed);
        self.sealed.store(sealed, Ordering::Release);
        self.written.store(records, Ordering::SeqCst);
        let wake_at = self.wake_at.load(Ordering::SeqCst);
        if wake_at != 0 && records >= wake_at {
            self.wake_follower();
        }
    }

    pub(crate) fn set_segment(&self, ordinal: u64) {
        self.segment.store(ordinal, Ordering::Release);
    }

    pub(crate) fn set_durable(&self, records: u64) {
        if self.durable.swap(records, Ordering::Release) != records {
            self.notify_progress();
        }
    }

    pub(crate) fn set_checkpointed(&self, records: u64) {
        self.checkpointed.store(records, Ordering::Release);
    }

    /// Stores a mark without waiting. If the other thread holds the lock, this mark is dropped,
    /// because the next mark follows soon.
    pub(crate) fn set_resume_state(&self, mark: PositionedResumeState) {
        if let Ok(mut slot) = self.mark.try_lock() {
            *slot = Some(mark);
        }
    }

    pub(crate) fn take_resume_state(&self) -> Option<PositionedResumeState> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn salt_blocks(&self) -> u64 {
        self.salt_blocks.load(Ordering::Acquire)
    }

    pub(crate) fn set_salt_blocks(&self, blocks: u64) {
        self.salt_blocks.store(blocks, Ordering::Release);
    }

    fn notify_progress(&self) {
        if let Some(wake) = self.on_progress.get() {
            wake();
        }
    }
}
