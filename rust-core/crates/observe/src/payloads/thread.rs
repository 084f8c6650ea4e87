//! The thread that seals bodies and writes them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use proofgate_base::priority;
use proofgate_ledger::record::PayloadOutcome;
use proofgate_payloads::{Payload, PayloadError, PayloadWriter};
use proofgate_wal::Storage;
use tokio::sync::mpsc;

use super::order::{Body, Order};
use super::state::State;
use crate::metrics::PayloadMetrics;

/// Stores bodies until nobody has any.
pub struct PayloadThread {
    pub(super) writer: PayloadWriter,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) shard_dir: PathBuf,
    /// Bytes that the volume must have free: as much as may be on its way there.
    pub(super) wanted_free: u64,
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) state: Arc<State>,
    pub(super) metrics: PayloadMetrics,
}

impl PayloadThread {
    /// Runs until the data plane has ended. A failure, also a panic, ends the storing and nothing else.
    pub fn run(mut self) {
        priority::yield_to_traffic();
        self.check_space();
        while let Some(order) = self.orders.blocking_recv() {
            let done = catch_unwind(AssertUnwindSafe(|| self.obey(order)));
            if done.is_err() {
                proofgate_log::error!("payload storage has stopped: its thread panicked");
                self.state.fail();
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Look => {
                self.state.looks();
                self.check_space();
            }
            Order::Store(body) => self.store(body),
        }
    }

    fn store(&mut self, body: Body) {
        let Body { of, mut copy, done } = body;
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
                self.metrics.stored(bytes);
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
        let free = self.storage.open_dir(&self.shard_dir).and_then(|dir| dir.free());
        // What cannot be looked at shows when it is written.
        if let Ok(free) = free {
            self.state.set_full(free < self.wanted_free);
        }
    }

    /// Nothing is written any more: what the disk holds behind a failed write is not known.
    fn fail(&self, error: &PayloadError) {
        proofgate_log::error!("payload storage has stopped: {error}");
        self.state.fail();
    }
}
