//! A copy of an answer.

use std::sync::Arc;

use proofgate_analysis::ResponseDialect;
use proofgate_base::bounded_copy::{BoundedCopy, CopyPool};

/// A copy of an answer as its client gets it, as far as there is room.
pub struct ResponseCopy {
    copy: BoundedCopy,
    pub(super) dialect: ResponseDialect,
}

impl ResponseCopy {
    pub(super) fn new(dialect: ResponseDialect, most: usize, room: Arc<CopyPool>) -> Self {
        ResponseCopy {
            copy: BoundedCopy::new(most, room),
            dialect,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.copy.bytes()
    }

    /// Whether more came than what may be copied.
    pub(super) fn is_truncated(&self) -> bool {
        self.copy.is_truncated
    }

    /// Whether there was no room for it.
    pub(super) fn is_dropped(&self) -> bool {
        self.copy.is_dropped
    }

    /// Adds what the client gets.
    pub fn append(&mut self, bytes: &[u8]) {
        self.copy.append(bytes);
    }
}
