//! How long written records wait for the ledger thread, measured while stage profiling is on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proofgate_stages::{Interval, Profiler};

/// Since when the oldest record waits that the ledger thread has not seen. Shared by the thread that writes records and
/// the one that follows them.
#[derive(Debug)]
pub struct LedgerDelay {
    pub profiler: Arc<Profiler>,
    epoch: Instant,
    /// Nanoseconds since the epoch; zero when nothing waits, or nobody measures.
    waiting_since: AtomicU64,
}

impl LedgerDelay {
    pub fn new(profiler: Arc<Profiler>) -> Self {
        LedgerDelay {
            profiler,
            epoch: Instant::now(),
            waiting_since: AtomicU64::new(0),
        }
    }

    /// Records have been written.
    pub fn mark_written(&self) {
        if self.profiler.is_enabled() && self.waiting_since.load(Ordering::Relaxed) == 0 {
            self.waiting_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// The ledger thread looks at what was written.
    pub fn mark_seen(&self) {
        let since = self.waiting_since.swap(0, Ordering::Relaxed);
        if since != 0 {
            let waited = Duration::from_nanos(self.now().saturating_sub(since));
            self.profiler.record(Interval::LedgerWake, waited);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos())
            .unwrap_or(u64::MAX)
            .max(1)
    }
}
