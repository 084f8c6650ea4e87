//! The data-plane thread's end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use proofgate_base::bounded_copy::{BoundedCopy, STEP, SharedRoom};
use proofgate_ledger::record::Kept;
use tokio::sync::mpsc::Sender;

use super::keeping::{Asked, Keeping};
use super::thread::{Body, Order};
use crate::metrics::PayloadMetrics;
use crate::recorder::Unavailable;

/// Whether bodies can be stored.
#[derive(Default)]
pub(super) struct State {
    now: AtomicU8,
    /// Whether a look at the volume waits in the queue.
    look_waits: AtomicBool,
}

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
            .now
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Nothing is stored any more in this life of the worker.
    pub(super) fn fail(&self) {
        self.now.store(FAILED, Ordering::Release);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.now.load(Ordering::Acquire) == FAILED
    }

    /// A look was taken out of the queue.
    pub(super) fn looks(&self) {
        self.look_waits.store(false, Ordering::Release);
    }

    fn check(&self) -> Result<(), Unavailable> {
        match self.now.load(Ordering::Acquire) {
            AS_USUAL => Ok(()),
            FULL => Err(Unavailable::Full),
            _ => Err(Unavailable::Payloads),
        }
    }
}

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

    /// Copies a request of a tenant that is to be admitted, and begins a copy of its answer, each of at most `most` bytes. A
    /// tenant takes at most half of all memory, or two bodies of this length, so that it leaves room to the others.
    ///
    /// # Errors
    /// [`Unavailable`] when it could not be stored: it is not to be admitted then.
    pub fn begin(
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
        let room = self.room.part(tenant, most.saturating_mul(2));
        let copy = || BoundedCopy::new(most, Arc::clone(&room));
        let request = match request {
            Asked::Coming => Err(Kept::Streamed),
            Asked::Whole(body) if body.len() > most => Err(Kept::TooLarge),
            Asked::Whole(body) => {
                let mut copied = copy();
                copied.take(body);
                copied.take_least();
                match copied.is_lost {
                    false => Ok(copied),
                    true => return Err(Unavailable::Payloads),
                }
            }
        };
        // Of its answer, too, as far as can be known.
        if !room.has(most.max(STEP)) {
            return Err(Unavailable::Payloads);
        }
        Ok(Box::new(Keeping::new(request, copy())))
    }

    /// Hands a body over. The queue has a place for each that takes the least of the room.
    pub(super) fn hand_over(&self, body: Body) {
        // Where the thread has ended, the sender hears it when its other end is dropped.
        let _ = self.queue.try_send(Order::Store(body));
    }

    pub(super) fn ended(&self, kept: Kept) {
        self.metrics.ended(kept);
    }

    /// Has the room on the volume looked at, and shows what waits. Called once a second.
    pub fn look(&self) {
        // One at a time: bodies need the other places.
        if !self.state.look_waits.swap(true, Ordering::AcqRel) {
            let _ = self.queue.try_send(Order::Look);
        }
        self.metrics.show(
            self.room.taken(),
            self.queue.is_closed() || self.state.has_failed(),
        );
    }
}
