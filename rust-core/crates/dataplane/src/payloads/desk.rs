//! The data-plane thread's end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use proofgate_ledger::record::Kept;
use tokio::sync::mpsc::Sender;

use super::keeping::{Asked, Keeping};
use super::thread::{Body, Order};
use crate::bounded_copy::{BoundedCopy, SharedRoom};
use crate::metrics::PayloadMetrics;
use crate::recorder::Unavailable;

/// Whether bodies can be stored.
#[derive(Default)]
pub(super) struct State(AtomicU8);

const AS_USUAL: u8 = 0;
const FULL: u8 = 1;
const FAILED: u8 = 2;

impl State {
    /// Says whether the volume has room; a failure stays.
    pub(super) fn set_full(&self, full: bool) {
        let (from, to) = match full {
            true => (AS_USUAL, FULL),
            false => (FULL, AS_USUAL),
        };
        let _ = self
            .0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Nothing is stored any more in this life of the worker.
    pub(super) fn fail(&self) {
        self.0.store(FAILED, Ordering::Release);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.0.load(Ordering::Acquire) == FAILED
    }

    fn check(&self) -> Result<(), Unavailable> {
        match self.0.load(Ordering::Acquire) {
            AS_USUAL => Ok(()),
            FULL => Err(Unavailable::Full),
            _ => Err(Unavailable::Payloads),
        }
    }
}

/// Where bodies that are to be stored are handed over.
pub(crate) struct PayloadDesk {
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

    /// Copies a request of a tenant that is to be admitted, and begins a copy of its answer, each of at most `most` bytes. A
    /// tenant takes at most half of all memory, or two bodies of this length, so that it leaves room to the others.
    ///
    /// # Errors
    /// [`Unavailable`] when it could not be stored: it is not to be admitted then.
    pub(crate) fn begin(
        &self,
        tenant: &Arc<str>,
        most: usize,
        request: Asked<'_>,
    ) -> Result<Box<Keeping>, Unavailable> {
        let begun = self.copy(tenant, most, request);
        if begun.is_err() {
            self.metrics.refused();
        }
        begun
    }

    fn copy(&self, tenant: &Arc<str>, most: usize, request: Asked<'_>) -> Result<Box<Keeping>, Unavailable> {
        self.state.check()?;
        if self.queue.capacity() == 0 {
            return Err(Unavailable::Payloads);
        }
        let room = self.room.part(tenant, most.saturating_mul(2));
        let copy = || BoundedCopy::new(most, Arc::clone(&room));
        let request = match request {
            Asked::Coming => Err(Kept::Streamed),
            Asked::Whole(body) if body.len() > most => Err(Kept::TooLarge),
            Asked::Whole(body) => {
                let mut copied = copy();
                copied.take(body);
                match copied.is_lost {
                    false => Ok(copied),
                    true => return Err(Unavailable::Payloads),
                }
            }
        };
        // Of its answer, too, as far as can be known.
        if !room.has(most) {
            return Err(Unavailable::Payloads);
        }
        Ok(Box::new(Keeping::new(request, copy())))
    }

    /// Hands a body over if there is room in the queue.
    pub(super) fn hand_over(&self, body: Body) {
        // Of what does not arrive, the sender hears when its other end is dropped.
        let _ = self.queue.try_send(Order::Store(body));
    }

    /// Hands a body over, once there is room in the queue.
    pub(super) async fn hand_over_in_turn(&self, body: Body) {
        let _ = self.queue.send(Order::Store(body)).await;
    }

    pub(super) fn ended(&self, kept: Kept) {
        self.metrics.ended(kept);
    }

    /// Has the room on the volume looked at, and shows what waits. Called once a second.
    pub(crate) fn look(&self) {
        let _ = self.queue.try_send(Order::Look);
        self.metrics.show(
            self.room.taken(),
            self.queue.is_closed() || self.state.has_failed(),
        );
    }
}
