//! Memory that the exchanges of a thread use one after the other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use proofgate_base::memory::MemoryBudget;
use proofgate_base::spare::BufferPool;
use proofgate_base::workspace::WorkspacePool;
use proofgate_json::Workspace;
use proofgate_providers::BodyText;

/// Bytes that each buffer of the thread keeps from one request or response to the next.
pub(crate) const RETAINED_BYTES: usize = 1024 * 1024;

/// The buffers of the data-plane thread, and the bound on the memory of bodies.
pub struct ThreadBuffers {
    /// The memory that all request and response bodies may use.
    pub budget: Rc<MemoryBudget>,
    /// Taken while a request is read and judged, and put back afterwards.
    pub request_buffers: Cell<RequestBuffers>,
    /// What reading responses needs.
    pub(crate) response_reading: RefCell<proofgate_inspect::ReadBuffers>,
    pub(crate) workspaces: WorkspacePool,
    /// For pieces of responses on their way.
    pub pool: BufferPool,
    /// Holds the head of a request for an upstream while it is written.
    pub(crate) outgoing: Cell<Vec<u8>>,
    /// Holds what was read from an upstream.
    pub(crate) incoming: Cell<Vec<u8>>,
}

impl ThreadBuffers {
    /// Empty buffers, within `budget`.
    pub(crate) fn new(budget: Rc<MemoryBudget>) -> Self {
        ThreadBuffers {
            request_buffers: Cell::default(),
            response_reading: RefCell::default(),
            workspaces: WorkspacePool::new(&budget),
            pool: BufferPool::default(),
            outgoing: Cell::default(),
            incoming: Cell::default(),
            budget,
        }
    }
}

/// Buffers for the request that is being read, kept from one to the next.
#[derive(Default)]
pub struct RequestBuffers {
    /// Its text.
    pub text: BodyText,
    /// What reading JSON needs.
    pub workspace: Workspace,
}

impl RequestBuffers {
    /// Releases what only reading a large request needs, and judging it does not.
    pub(crate) fn release_parse_memory(&mut self) {
        if self.workspace.capacity() > RETAINED_BYTES {
            self.workspace.release_memory(RETAINED_BYTES);
        }
    }

    /// Releases what the text of a long document does not need: of one that is a picture, nearly all of its memory. What
    /// the next document can use is kept, since the system gives new memory slowly.
    pub(crate) fn shrink_text(&mut self) {
        if self.text.capacity() > RETAINED_BYTES.min(self.text.size().saturating_mul(2)) {
            self.text.shrink_to_used();
        }
    }

    /// Leaves the buffers to the next request, without what only a large one needs.
    pub(crate) fn release_to(mut self, buffers: &ThreadBuffers) {
        if self.text.capacity() > RETAINED_BYTES {
            self.text.release_memory(RETAINED_BYTES);
        }
        // One that never read would replace one that has its memory.
        if self.text.capacity() > 0 {
            buffers.request_buffers.set(self);
        }
    }
}

/// Boxed as all that only long bodies wait in: the others need no memory for it.
pub(crate) async fn prepare_text(text: &mut BodyText, bytes: usize) {
    let pieces = async {
        for (number, ()) in text.reserve_steps(bytes).enumerate() {
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
