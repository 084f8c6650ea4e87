//! Memory that the exchanges of a thread share; one exchange uses it at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use proofgate_base::buffer_pool::BufferPool;
use proofgate_base::memory::MemoryBudget;
use proofgate_base::workspace::WorkspacePool;
use proofgate_json::Workspace;
use proofgate_providers::BodyText;

/// Maximum bytes that each buffer of the thread keeps between requests or responses.
pub(crate) const RETAINED_BYTES: usize = 1024 * 1024;

/// The buffers of the data-plane thread, and the bound on the memory of bodies.
pub struct ThreadBuffers {
    /// The budget of memory for all request and response bodies.
    pub budget: Rc<MemoryBudget>,
    /// The request buffers, which are taken while a request is read and judged, and put back
    /// afterwards.
    pub request_buffers: Cell<RequestBuffers>,
    /// Buffers for reading responses.
    pub(crate) response_read_buffers: RefCell<proofgate_inspect::ReadBuffers>,
    pub(crate) workspaces: WorkspacePool,
    /// Buffers for pieces of responses in transit.
    pub pool: BufferPool,
    /// The head of an upstream request that is being written.
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

/// Buffers for the request that is being read. The next request reuses them.
#[derive(Default)]
pub struct RequestBuffers {
    /// The text of the request.
    pub text: BodyText,
    /// Memory for the JSON parser.
    pub workspace: Workspace,
}

impl RequestBuffers {
    /// Releases memory that is needed to parse a large request, but not to judge it.
    pub(crate) fn release_parse_memory(&mut self) {
        if self.workspace.capacity() > RETAINED_BYTES {
            self.workspace.release_memory(RETAINED_BYTES);
        }
    }

    /// Releases memory that the text of a long document does not need; for a picture, nearly all of
    /// it. Keeps memory that the next document can use, because allocating new memory is slow.
    pub(crate) fn shrink_text(&mut self) {
        if self.text.capacity() > RETAINED_BYTES.min(self.text.size().saturating_mul(2)) {
            self.text.shrink_to_used();
        }
    }

    /// Puts the buffers back for the next request, without memory that only a large request needs.
    pub(crate) fn release_to(mut self, buffers: &ThreadBuffers) {
        if self.text.capacity() > RETAINED_BYTES {
            self.text.release_memory(RETAINED_BYTES);
        }
        // Buffers without memory must not replace buffers that have memory.
        if self.text.capacity() > 0 {
            buffers.request_buffers.set(self);
        }
    }
}

/// Allocates memory for a long text in steps. The future is boxed, like all futures that only long
/// bodies await, so that other requests need no memory for it.
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
