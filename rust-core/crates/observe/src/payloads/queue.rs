//! The data-plane thread's side of payload storage.

use std::sync::Arc;

use proofgate_base::bounded_copy::{CopyPool, TenantSharedPool};
use proofgate_ledger::record::PayloadOutcome;
use tokio::sync::mpsc::Sender;

use super::command::{Body, PayloadCommand};
use super::state::State;
use crate::metrics::PayloadMetrics;
use crate::recorder::LedgerUnavailable;

/// The queue of bodies to be stored.
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

    /// Returns a tenant's part of the memory: half of all memory, or `least` bytes.
    ///
    /// # Errors
    /// [`LedgerUnavailable`] if no body can be stored.
    pub(super) fn memory_for(
        &self,
        tenant: &Arc<str>,
        least: usize,
    ) -> Result<Arc<CopyPool>, LedgerUnavailable> {
        self.state.check()?;
        Ok(self.memory.tenant_pool(tenant, least))
    }

    /// Counts an exchange that is not admitted because it could not be stored.
    pub(super) fn record_refused(&self) {
        self.metrics.record_refused();
    }

    /// Submits a body. The queue has a slot for every body that reserves the minimum of memory.
    pub(super) fn submit(&self, body: Body) {
        // If the thread has ended, the sender of the outcome is dropped, which notifies its
        // receiver.
        let _ = self.queue.try_send(PayloadCommand::Store(body));
    }

    pub(super) fn record_outcome(&self, kept: PayloadOutcome) {
        self.metrics.record_outcome(kept);
    }

    /// Requests a check of the volume's free space, and updates the gauges. Called once a second.
    pub fn request_space_check(&self) {
        // Queue only one check at a time, because bodies need the other slots.
        if self.state.should_queue_check() {
            let _ = self.queue.try_send(PayloadCommand::CheckSpace);
        }
        self.metrics.update_gauges(
            self.memory.used(),
            self.queue.is_closed() || self.state.has_failed(),
        );
    }
}
