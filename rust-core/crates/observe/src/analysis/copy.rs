//! A copy of a response.

use std::sync::Arc;

use proofgate_analysis::ResponseDialect;
use proofgate_base::bounded_copy::{BoundedCopy, CopyPool};

/// A copy of a response as its client receives it. The copy may be truncated, or dropped if there
/// is no memory for it.
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

    /// Returns whether the response is longer than the maximum of a copy.
    pub(super) fn is_truncated(&self) -> bool {
        self.copy.is_truncated
    }

    /// Returns whether there was no memory for the copy.
    pub(super) fn is_dropped(&self) -> bool {
        self.copy.is_dropped
    }

    /// Appends bytes that the client receives.
    pub fn append(&mut self, bytes: &[u8]) {
        self.copy.append(bytes);
    }
}
