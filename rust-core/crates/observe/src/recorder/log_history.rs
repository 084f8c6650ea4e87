//! What is remembered of the logs that the worker has written in this life.

use std::sync::Arc;
use std::time::Instant;

use proofgate_wal::{Ulid, Watermark};

/// A log of this life of the worker that is not in service any more.
pub(super) struct FormerLog {
    pub(super) base: u64,
    pub(super) incarnation: Ulid,
    pub(super) watermark: Arc<Watermark>,
    /// Whether the log that followed it records its end.
    pub(super) end_recorded: bool,
}

/// Where the log was last marked.
#[derive(Clone, Copy)]
pub(super) struct LastMark {
    pub(super) position: u64,
    pub(super) at: Instant,
}

impl LastMark {
    pub(super) fn none() -> Self {
        Self {
            position: 0,
            at: Instant::now(),
        }
    }
}
