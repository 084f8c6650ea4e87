//! The threads of a worker: whether they are running, and how they ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::Error;

/// Counts the running threads.
pub struct Threads {
    remaining: Mutex<usize>,
    finished: Condvar,
    failed: AtomicBool,
}

impl Threads {
    /// Creates a counter for `left` threads that will be spawned.
    pub fn new(left: usize) -> Arc<Self> {
        Arc::new(Threads {
            remaining: Mutex::new(left),
            finished: Condvar::new(),
            failed: AtomicBool::new(false),
        })
    }

    /// Whether any thread has failed.
    pub fn any_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits at most `timeout` until all threads have ended; returns true if all have ended and
    /// none failed.
    pub fn join(&self, timeout: Duration) -> bool {
        let left = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.finished.wait_timeout_while(left, timeout, |left| *left != 0);
        let (left, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *left == 0 && !self.any_failed()
    }

    /// Spawns a thread.
    pub fn spawn(
        self: &Arc<Self>,
        name: &'static str,
        body: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<Thread, Error> {
        let threads = Arc::clone(self);
        let run = move || {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            if !ended.unwrap_or(false) {
                threads.failed.store(true, Ordering::Release);
            }
            *threads.remaining.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            threads.finished.notify_all();
        };
        let handle = thread::Builder::new().name(format!("proofgate-{name}"));
        let handle = handle
            .spawn(run)
            .map_err(|source| Error::Thread { thread: name, source })?;
        Ok(handle.thread().clone())
    }
}
