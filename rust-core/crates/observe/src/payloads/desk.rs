//! The data-plane thread's end.

use std::sync::Arc;

use proofgate_base::bounded_copy::{CopyPool, SharedRoom};
use proofgate_ledger::record::PayloadOutcome;
use tokio::sync::mpsc::Sender;

use super::order::{Body, Order};
use super::state::State;
use crate::metrics::PayloadMetrics;
use crate::recorder::Unavailable;

/// Where bodies that are to be stored are handed over.
pub struct PayloadDesk {
    queue: Sender<Order>,
    room: SharedRoom,
    state: Arc<State>,
    metrics: PayloadMetrics,
}

impl PayloadDesk {
    pub(super) fn new(
        queue: Sender<Order>,
        room: SharedRoom,
        state: Arc<State>,
        metrics: PayloadMetrics,
    ) -> Self {
        PayloadDesk {
            queue,
            room,
            state,
            metrics,
        }
    }

    /// What a tenant may take of the memory: half of it, or `least` bytes.
    ///
    /// # Errors
    /// [`Unavailable`] when nothing can be stored.
    pub(super) fn room_for(&self, tenant: &Arc<str>, least: usize) -> Result<Arc<CopyPool>, Unavailable> {
        self.state.check()?;
        Ok(self.room.part(tenant, least))
    }

    /// Counts an exchange that is not admitted, because it could not be stored.
    pub(super) fn refused(&self) {
        self.metrics.refused();
    }

    /// Hands a body over. The queue has a place for each that takes the least of the room.
    pub(super) fn hand_over(&self, body: Body) {
        // Where the thread has ended, the sender hears it when its other end is dropped.
        let _ = self.queue.try_send(Order::Store(body));
    }

    pub(super) fn ended(&self, kept: PayloadOutcome) {
        self.metrics.ended(kept);
    }

    /// Has the room on the volume looked at, and shows what waits. Called once a second.
    pub fn look(&self) {
        // One at a time: bodies need the other places.
        if self.state.wants_look() {
            let _ = self.queue.try_send(Order::Look);
        }
        self.metrics.show(
            self.room.taken(),
            self.queue.is_closed() || self.state.has_failed(),
        );
    }
}
