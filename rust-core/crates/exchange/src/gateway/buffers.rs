//! Memory that the exchanges of a thread share, one at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use proofgate_base::buffer_pool::BufferPool;
use proofgate_base::memory::MemoryBudget;
use proofgate_base::workspace::WorkspacePool;
use proofgate_json::Workspace;
use proofgate_providers::BodyText;

/// Bytes that each buffer of the thread keeps between requests or responses.
pub(crate) const RETAINED_BYTES: usize = 1024 * 1024;

/// The buffers of the data-plane thread, and the bound on the memory of bodies.
pub struct ThreadBuffers {
    /// The memory that all request and response bodies may use.
    pub budget: Rc<MemoryBudget>,
    /// Taken while a request is read and judged, and put back afterwards.
    pub request_buffers: Cell<RequestBuffers>,
    /// Buffers for reading responses.
    pub(crate) response_read_buffers: RefCell<proofgate_inspect::ReadBuffers>,
    pub(crate) workspaces: WorkspacePool,
    /// Buffers for pieces of responses in transit.
    pub pool: BufferPool,
    /// The head of an upstream request while it is written.
    pub(crate) outgoing: Cell<Vec<u8>>,
    /// The bytes read from an upstream.
    pub(crate) incoming: Cell<Vec<u8>>,
}

impl ThreadBuffers {
    /// Creates empty buffers within `budget`.
    pub(crate) fn new(budget: Rc<MemoryBudget>) -> Self {
        ThreadBuffers {
            request_buffers: Cell::default(),
            response_read_buffers: RefCell::default(),
            workspaces: WorkspacePool::new(&budget),
            pool: BufferPool::default(),
            outgoing: Cell::default(),
            incoming: Cell::default(),
            budget,
        }
    }
}

/// Buffers for the request that is being read, reused by the next one.
#[derive(Default)]
pub struct RequestBuffers {
    /// Its text.
    pub text: BodyText,
    /// Memory for the JSON parser.
    pub workspace: Workspace,
}

impl RequestBuffers {
    /// Releases memory that is only needed to parse a large request, and not to judge it.
    pub(crate) fn release_parse_memory(&mut self) {
        if self.workspace.capacity() > RETAINED_BYTES {
            self.workspace.release_memory(RETAINED_BYTES);
        }
    }

    /// Releases memory that the text of a long document does not need; for a picture, that is nearly all. Memory that
    /// the next document can use is kept, because the system provides new memory slowly.
    pub(crate) fn shrink_text(&mut self) {
        if self.text.capacity() > RETAINED_BYTES.min(self.text.size().saturating_mul(2)) {
            self.text.shrink_to_used();
        }
    }

    /// Returns the buffers for the next request, without memory that only a large one needs.
    pub(crate) fn release_to(mut self, buffers: &ThreadBuffers) {
        if self.text.capacity() > RETAINED_BYTES {
            self.text.release_memory(RETAINED_BYTES);
        }
        // Unused buffers must not replace ones that have memory.
        if self.text.capacity() > 0 {
            buffers.request_buffers.set(self);
        }
    }
}

/// Reserves memory for a long text in steps. Boxed, like everything that only long bodies await, so that other
/// requests need no memory for it.
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
