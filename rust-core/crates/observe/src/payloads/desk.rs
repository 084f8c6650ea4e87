//! The data-plane thread's end.

use std::sync::Arc;

use proofgate_base::bounded_copy::{CopyPool, TenantSharedPool};
use proofgate_ledger::record::PayloadOutcome;
use tokio::sync::mpsc::Sender;

use super::order::{Body, PayloadCommand};
use super::state::State;
use crate::metrics::PayloadMetrics;
use crate::recorder::LedgerUnavailable;

/// Where bodies that are to be stored are handed over.
pub struct PayloadQueue {
    queue: Sender<PayloadCommand>,
    memory: TenantSharedPool,
    state: Arc<State>,
    metrics: PayloadMetrics,
}

impl PayloadQueue {
    pub(super) fn new(
        queue: Sender<PayloadCommand>,
        room: TenantSharedPool,
        state: Arc<State>,
        metrics: PayloadMetrics,
    ) -> Self {
        PayloadQueue {
            queue,
            memory: room,
            state,
            metrics,
        }
    }

    /// What a tenant may take of the memory: half of it, or `least` bytes.
    ///
    /// # Errors
    /// [`LedgerUnavailable`] when nothing can be stored.
    pub(super) fn memory_for(
        &self,
        tenant: &Arc<str>,
        least: usize,
    ) -> Result<Arc<CopyPool>, LedgerUnavailable> {
        self.state.check()?;
        Ok(self.memory.tenant_pool(tenant, least))
    }

    /// Counts an exchange that is not admitted, because it could not be stored.
    pub(super) fn record_refused(&self) {
        self.metrics.record_refused();
    }

    /// Hands a body over. The queue has a place for each that takes the least of the room.
    pub(super) fn submit(&self, body: Body) {
        // Where the thread has ended, the sender hears it when its other end is dropped.
        let _ = self.queue.try_send(PayloadCommand::Store(body));
    }

    pub(super) fn record_outcome(&self, kept: PayloadOutcome) {
        self.metrics.record_outcome(kept);
    }

    /// Has the room on the volume looked at, and shows what waits. Called once a second.
    pub fn request_space_check(&self) {
        // One at a time: bodies need the other places.
        if self.state.should_queue_check() {
            let _ = self.queue.try_send(PayloadCommand::CheckSpace);
        }
        self.metrics.update_gauges(
            self.memory.used(),
            self.queue.is_closed() || self.state.has_failed(),
        );
    }
}
