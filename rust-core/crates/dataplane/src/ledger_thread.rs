use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use proofgate_ledger::SigningKey;
use proofgate_stages::Interval;
use proofgate_wal::{Follower, Preparation, WalError, Watermark};

use crate::config::Durability;
use crate::ledger_delay::LedgerDelay;
use crate::priority;

/// How long the thread sleeps between two looks at what was written.
const POLL: Duration = Duration::from_millis(50);

/// How long it waits after it found no space for a segment.
const STARVED: Duration = Duration::from_secs(1);

/// The thread that turns written records into evidence: reads them back, grows the tree, syncs, signs checkpoints.
pub(crate) struct LedgerThread {
    pub(crate) follower: Follower,
    pub(crate) watermark: Arc<Watermark>,
    pub(crate) key: SigningKey,
    pub(crate) durability: Durability,
    pub(crate) checkpoint_interval: Duration,
    /// Set when the last record has been appended.
    pub(crate) finish: Arc<AtomicBool>,
    pub(crate) delay: Arc<LedgerDelay>,
}

impl LedgerThread {
    /// Runs until the log is sealed and its last checkpoint is on disk, or until it fails; a failure, also a panic,
    /// poisons the log, and a poisoned log admits nothing. `false` when it failed.
    pub(crate) fn run(mut self) -> bool {
        priority::yield_to_traffic();
        let watermark = Arc::clone(&self.watermark);
        match catch_unwind(AssertUnwindSafe(|| self.follow())) {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => watermark.poison(error.to_string()),
            Err(_) => watermark.poison("the ledger thread panicked"),
        }
        false
    }

    fn follow(&mut self) -> Result<(), WalError> {
        let mut checkpoint_due = Instant::now();
        let mut segment_due = checkpoint_due;
        loop {
            // Read before the last look: whatever was appended before it was set is then seen.
            if self.finish.load(Ordering::Acquire) {
                self.follower.finish(&self.key)?;
                return Ok(());
            }
            self.delay.seen();
            let (timer, followed) = (self.delay.profiler.timer(), self.follower.followed());
            while Instant::now() >= segment_due {
                match self.follower.prepare() {
                    Preparation::Prepared => {}
                    Preparation::Enough => break,
                    Preparation::Starved(_) => segment_due = Instant::now() + STARVED,
                }
            }
            while self.follower.step()?.behind {}
            if self.durability == Durability::Synced {
                self.follower.sync()?;
            }
            if self.watermark.checkpointed() < self.follower.followed() && Instant::now() >= checkpoint_due {
                self.follower.sync()?;
                self.sign()?;
                checkpoint_due = Instant::now() + self.checkpoint_interval;
            }
            if self.follower.followed() > followed {
                timer.stop(&self.delay.profiler, Interval::LedgerBatch);
            }
            park_timeout(POLL.min(self.checkpoint_interval));
        }
    }

    /// Signs a checkpoint. Without space for it the former one stays, and the next interval tries again.
    fn sign(&mut self) -> Result<(), WalError> {
        match self.follower.checkpoint(&self.key) {
            Err(WalError::Full { .. }) => Ok(()),
            Err(error) if !self.watermark.is_poisoned() && is_out_of_space(&error) => Ok(()),
            signed => signed.map(drop),
        }
    }
}

fn is_out_of_space(error: &WalError) -> bool {
    matches!(error, WalError::Io { source, .. } if proofgate_wal::is_no_space(source))
}
