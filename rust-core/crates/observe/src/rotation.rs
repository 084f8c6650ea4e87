//! The handoff between the ledger thread and the data-plane thread when logs rotate while the
//! worker serves. Neither thread ever waits for the other. A value that cannot be exchanged now is
//! exchanged in the next turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use proofgate_ledger::record::ConfigDigests;
use proofgate_wal::{PreviousLog, Ulid, Watermark, Writer};

/// The size and age at which a log ends while the worker serves.
#[derive(Clone, Copy)]
pub struct RotationBounds {
    /// Size of the records in bytes.
    pub max_bytes: u64,
    pub max_age: Duration,
}

/// A log that is ready for service.
pub struct ReadyLog {
    pub incarnation: Ulid,
    pub writer: Writer,
    /// The configuration that its `open` record names.
    pub config: ConfigDigests,
}

/// The exchange of logs between the two threads.
#[derive(Default)]
pub struct LogHandoff {
    next: Mutex<Option<ReadyLog>>,
    previous_log: Mutex<Option<PreviousLog>>,
    /// Whether the log in service should end before it is full or old.
    rotation_requested: AtomicBool,
}

impl LogHandoff {
    pub(crate) fn offer_next(&self, next: ReadyLog) {
        *lock(&self.next) = Some(next);
    }

    /// Takes the next log without waiting, for the data-plane thread.
    pub(crate) fn take_next(&self) -> Option<ReadyLog> {
        try_lock(&self.next)?.take()
    }

    /// Returns whether a next log was offered and not taken yet.
    pub(crate) fn has_next(&self) -> bool {
        lock(&self.next).is_some()
    }

    /// Takes the next log back, for the ledger thread, after the data-plane thread has ended.
    pub fn reclaim_next(&self) -> Option<ReadyLog> {
        lock(&self.next).take()
    }

    /// Requests a rotation of the log in service.
    pub fn request_rotation(&self) {
        self.rotation_requested.store(true, Ordering::Release);
    }

    /// Returns whether a rotation was requested since the last log was started.
    pub(crate) fn is_rotation_requested(&self) -> bool {
        self.rotation_requested.load(Ordering::Acquire)
    }

    /// Marks that a new log is being started, so that later requests are for its successor. Returns
    /// whether a log was requested.
    pub(crate) fn start_next(&self) -> bool {
        self.rotation_requested.swap(false, Ordering::AcqRel)
    }

    /// Sets the end of the previous log.
    pub(crate) fn set_previous(&self, left: PreviousLog) {
        *lock(&self.previous_log) = Some(left);
    }

    /// Takes the end of the previous log without waiting, for the data-plane thread.
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

/// The log in service, for readers outside the two threads.
#[derive(Clone)]
pub struct ActiveLog {
    pub origin: String,
    pub directory: std::path::PathBuf,
    pub incarnation: Ulid,
    pub watermark: Arc<Watermark>,
    /// Number of this worker run's records in the previous logs.
    pub records_before: u64,
}

/// The shared information about the log that is in service now.
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
