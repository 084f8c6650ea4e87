//! The delay between writing records and reading them by the ledger thread, measured while stage
//! profiling is enabled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proofgate_stages::{Interval, Profiler};

/// The time for which the oldest record has waited for the ledger thread. The data-plane thread and
/// the ledger thread share this value.
#[derive(Debug)]
pub struct LedgerDelay {
    pub profiler: Arc<Profiler>,
    epoch: Instant,
    /// Start of the wait, in nanoseconds since the epoch; zero if no record waits or profiling is
    /// disabled.
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

    /// Marks that records were written.
    pub fn mark_written(&self) {
        if self.profiler.is_enabled() && self.waiting_since.load(Ordering::Relaxed) == 0 {
            self.waiting_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Marks that the ledger thread reads the written records.
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
