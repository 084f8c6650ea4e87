//! The thread that seals bodies and writes them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use proofgate_base::priority;
use proofgate_ledger::record::PayloadOutcome;
use proofgate_payloads::{Payload, PayloadError, PayloadWriter};
use proofgate_wal::Storage;
use tokio::sync::mpsc;

use super::command::{Body, PayloadCommand};
use super::state::State;
use crate::metrics::PayloadMetrics;

/// The payload thread, which stores bodies until all senders are dropped.
pub struct PayloadThread {
    pub(super) writer: PayloadWriter,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) shard_dir: PathBuf,
    /// Minimum free bytes of the volume: the maximum size of all bodies that may still be written.
    pub(super) min_free_bytes: u64,
    pub(super) commands: mpsc::Receiver<PayloadCommand>,
    pub(super) state: Arc<State>,
    pub(super) metrics: PayloadMetrics,
}

impl PayloadThread {
    /// Runs until the data plane has ended. A failure or a panic only ends storage.
    pub fn run(mut self) {
        priority::lower_priority();
        self.check_space();
        while let Some(order) = self.commands.blocking_recv() {
            let done = catch_unwind(AssertUnwindSafe(|| self.execute(order)));
            if done.is_err() {
                proofgate_log::error!("payload storage has stopped: its thread panicked");
                self.state.fail();
            }
        }
    }

    fn execute(&mut self, order: PayloadCommand) {
        match order {
            PayloadCommand::CheckSpace => {
                self.state.mark_check_dequeued();
                self.check_space();
            }
            PayloadCommand::Store(body) => self.store(body),
        }
    }

    fn store(&mut self, body: Body) {
        let Body {
            context: of,
            mut copy,
            outcome_sender: done,
        } = body;
        if self.state.has_failed() {
            let _ = done.send(PayloadOutcome::Failed);
            return;
        }
        let bytes = copy.bytes().len() as u64;
        let stored = self.writer.store(Payload {
            incarnation: of.incarnation,
            seq: of.seq,
            field: of.field,
            key: of.key,
            body: copy.take_bytes(),
        });
        let kept = match stored {
            Ok(()) => {
                self.metrics.record_stored(bytes);
                PayloadOutcome::Stored
            }
            Err(error) if error.is_out_of_space() => {
                self.state.set_full(true);
                PayloadOutcome::NoRoom
            }
            Err(error) => {
                self.fail(&error);
                PayloadOutcome::Failed
            }
        };
        drop(copy);
        let _ = done.send(kept);
    }

    fn check_space(&self) {
        let free = self
            .storage
            .open_dir(&self.shard_dir)
            .and_then(|dir| dir.free_bytes());
        // If the check fails, a full volume is detected when writing.
        if let Ok(free) = free {
            self.state.set_full(free < self.min_free_bytes);
        }
    }

    /// Stops all writes, because after a failed write the contents of the disk are unknown.
    fn fail(&self, error: &PayloadError) {
        proofgate_log::error!("payload storage has stopped: {error}");
        self.state.fail();
    }
}
