//! Memory that the exchanges of a thread use one after the other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use proofgate_base::memory::Budget;
use proofgate_base::spare::Spare;
use proofgate_base::workspace::Workspaces;
use proofgate_json::Workspace;
use proofgate_providers::BodyText;

/// Bytes that each buffer of the thread keeps from one request or response to the next.
pub(crate) const KEPT: usize = 1024 * 1024;

/// The buffers of the data-plane thread, and the bound on the memory of bodies.
pub struct Buffers {
    /// The memory that all request and response bodies may use.
    pub budget: Rc<Budget>,
    /// Taken while a request is read and judged, and put back afterwards.
    pub reading: Cell<Reading>,
    /// What reading responses needs.
    pub(crate) answer_reading: RefCell<proofgate_inspect::Reading>,
    pub(crate) workspaces: Workspaces,
    /// For pieces of responses on their way.
    pub spare: Spare,
    /// Holds the head of a request for an upstream while it is written.
    pub(crate) outgoing: Cell<Vec<u8>>,
    /// Holds what was read from an upstream.
    pub(crate) incoming: Cell<Vec<u8>>,
}

impl Buffers {
    /// Empty buffers, within `budget`.
    pub(crate) fn new(budget: Rc<Budget>) -> Self {
        Buffers {
            reading: Cell::default(),
            answer_reading: RefCell::default(),
            workspaces: Workspaces::new(&budget),
            spare: Spare::default(),
            outgoing: Cell::default(),
            incoming: Cell::default(),
            budget,
        }
    }
}

/// Buffers for the request that is being read, kept from one to the next.
#[derive(Default)]
pub struct Reading {
    /// Its text.
    pub text: BodyText,
    /// What reading JSON needs.
    pub workspace: Workspace,
}

impl Reading {
    /// Releases what only reading a large request needs, and judging it does not.
    pub(crate) fn end_reading(&mut self) {
        if self.workspace.capacity() > KEPT {
            self.workspace.give_back(KEPT);
        }
    }

    /// Releases what the text of a long document does not need: of one that is a picture, nearly all of its memory. What
    /// the next document can use is kept, since the system gives new memory slowly.
    pub(crate) fn fit_text(&mut self) {
        if self.text.capacity() > KEPT.min(self.text.size().saturating_mul(2)) {
            self.text.shrink();
        }
    }

    /// Leaves the buffers to the next request, without what only a large one needs.
    pub(crate) fn give_back_to(mut self, buffers: &Buffers) {
        if self.text.capacity() > KEPT {
            self.text.give_back(KEPT);
        }
        // One that never read would replace one that has its memory.
        if self.text.capacity() > 0 {
            buffers.reading.set(self);
        }
    }
}

/// Boxed as all that only long bodies wait in: the others need no memory for it.
pub(crate) async fn make_ready(text: &mut BodyText, bytes: usize) {
    let pieces = async {
        for (number, ()) in text.make_ready(bytes).enumerate() {
            if number % 4 == 3 {
                tokio::task::yield_now().await;
            }
        }
    };
    Box::pin(pieces).await;
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
