//! A copy of an answer.

use std::sync::Arc;

use proofgate_analysis::Dialect;
use proofgate_base::bounded_copy::{BoundedCopy, CopyPool};

/// A copy of an answer as its client gets it, as far as there is room.
pub struct AnswerCopy {
    copy: BoundedCopy,
    pub(super) dialect: Dialect,
}

impl AnswerCopy {
    pub(super) fn new(dialect: Dialect, most: usize, room: Arc<CopyPool>) -> Self {
        AnswerCopy {
            copy: BoundedCopy::new(most, room),
            dialect,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.copy.bytes()
    }

    /// Whether more came than what may be copied.
    pub(super) fn partly(&self) -> bool {
        self.copy.partly
    }

    /// Whether there was no room for it.
    pub(super) fn is_lost(&self) -> bool {
        self.copy.is_lost
    }

    /// Adds what the client gets.
    pub fn take(&mut self, bytes: &[u8]) {
        self.copy.take(bytes);
    }
}
