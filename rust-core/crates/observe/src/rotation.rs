//! What the ledger thread and the data-plane thread hand each other when a log ends and the next one begins while the
//! worker serves. Neither ever waits for the other: what cannot be laid down or taken up now is at the next turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use proofgate_ledger::record::ConfigDigests;
use proofgate_wal::{PreviousLog, Ulid, Watermark, Writer};

/// When a log ends while the worker serves.
#[derive(Clone, Copy)]
pub struct RotationBounds {
    /// Bytes of records.
    pub max_bytes: u64,
    pub max_age: Duration,
}

/// A log that is ready to be gone over to.
pub struct ReadyLog {
    pub incarnation: Ulid,
    pub writer: Writer,
    /// The configuration that its `open` record names.
    pub config: ConfigDigests,
}

/// Where the two threads lay what the other is to take up.
#[derive(Default)]
pub struct LogHandoff {
    next: Mutex<Option<ReadyLog>>,
    previous_log: Mutex<Option<PreviousLog>>,
    /// Whether the log in service is to end before it is full or old.
    rotation_requested: AtomicBool,
}

impl LogHandoff {
    pub(crate) fn offer_next(&self, next: ReadyLog) {
        *lock(&self.next) = Some(next);
    }

    /// For the data-plane thread: never waits.
    pub(crate) fn take_next(&self) -> Option<ReadyLog> {
        try_lock(&self.next)?.take()
    }

    /// Whether a log lies here that nobody has gone over to.
    pub(crate) fn has_next(&self) -> bool {
        lock(&self.next).is_some()
    }

    /// For the ledger thread, once the data-plane thread has ended.
    pub fn reclaim_next(&self) -> Option<ReadyLog> {
        lock(&self.next).take()
    }

    /// Asks for another log than the one in service.
    pub fn request_rotation(&self) {
        self.rotation_requested.store(true, Ordering::Release);
    }

    /// Whether somebody has asked for another log since the last one was begun.
    pub(crate) fn is_rotation_requested(&self) -> bool {
        self.rotation_requested.load(Ordering::Acquire)
    }

    /// Another log is begun: who asks from here on asks for one behind it. Whether somebody had asked.
    pub(crate) fn start_next(&self) -> bool {
        self.rotation_requested.swap(false, Ordering::AcqRel)
    }

    /// Says how the log that was gone over from ended.
    pub(crate) fn set_previous(&self, left: PreviousLog) {
        *lock(&self.previous_log) = Some(left);
    }

    /// For the data-plane thread: never waits.
    pub(crate) fn take_previous_log(&self) -> Option<PreviousLog> {
        try_lock(&self.previous_log)?.take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The log in service, for everybody outside the two threads.
#[derive(Clone)]
pub struct ActiveLog {
    pub origin: String,
    pub directory: std::path::PathBuf,
    pub incarnation: Ulid,
    pub watermark: Arc<Watermark>,
    /// Records of this life of the worker in the logs before.
    pub records_before: u64,
}

/// Which log is in service now.
#[derive(Clone)]
pub struct CurrentLog(Arc<Mutex<ActiveLog>>);

impl CurrentLog {
    pub fn new(log: ActiveLog) -> Self {
        Self(Arc::new(Mutex::new(log)))
    }

    pub fn get(&self) -> ActiveLog {
        lock(&self.0).clone()
    }

    pub fn replace(&self, log: ActiveLog) {
        *lock(&self.0) = log;
    }
}
