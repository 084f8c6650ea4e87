//! State shared by the data-plane thread and the ledger thread: how far the log is written, how far it is durable, and
//! whether it has stopped. Neither side ever waits for the other's lock.

use crate::WalError;
use crate::resume_state::PositionedResumeState;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

type WakeFn = Box<dyn Fn() + Send + Sync>;

/// Progress of one incarnation's log. All counts are numbers of records: record `seq` is written when
/// `written() > seq` and durable when `durable() > seq`.
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
    /// Number of written records at which the ledger thread wakes; 0 when it does not sleep.
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
    /// Records written into the page cache: they survive the death of the process.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Bytes of segments written, headers included.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Records known to be on the disk: they survive a power loss.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Records covered by the newest stored checkpoint.
    #[must_use]
    pub fn checkpointed(&self) -> u64 {
        self.checkpointed.load(Ordering::Acquire)
    }

    /// Ordinal of the segment being written.
    #[must_use]
    pub fn segment(&self) -> u64 {
        self.segment.load(Ordering::Acquire)
    }

    /// Whether the last written record is a seal.
    #[must_use]
    pub fn sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    /// Whether a write or sync has failed. It never becomes false again.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.stop_reason.get().is_some()
    }

    /// The failure that stopped the log.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&str> {
        self.stop_reason.get().map(String::as_str)
    }

    /// Stops the log permanently: nothing is acknowledged after this. The first reason is kept.
    pub fn poison(&self, reason: impl Into<String>) {
        // A second failure is a consequence of the first.
        let _ = self.stop_reason.set(reason.into());
        self.notify_progress();
        self.wake_follower();
    }

    /// Sets a callback that runs on the ledger thread whenever `durable` has moved or the log has stopped. The data
    /// plane passes the waker of its event loop. Only the first call has an effect.
    pub fn on_progress(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_progress.set(Box::new(wake));
    }

    /// Parks the calling thread (the ledger thread) until more than `seen` records are written, the log has stopped, or
    /// `timeout` has passed; it may also return early. Pass a `seen` somewhat above the number of followed records to
    /// be woken once for many records: each wake-up costs the data plane a system call.
    pub fn wait_written(&self, seen: u64, timeout: Duration) {
        *self.parked_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
        self.wake_at.store(seen.saturating_add(1), Ordering::SeqCst);
        if self.written.load(Ordering::SeqCst) <= seen && !self.is_poisoned() {
            std::thread::park_timeout(timeout);
        }
        self.wake_at.store(0, Ordering::SeqCst);
    }

    /// Wakes the ledger thread if it waits, for instance to drain or to prepare a segment.
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

    /// Never waits: the other side holds the lock only for a move, and if it is busy, the next mark comes soon.
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
